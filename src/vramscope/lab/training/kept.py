"""Finished cells and predictions in a small SQLite file: an interrupted grid goes on where it was.

Each row is one transaction, so that ``kill -9`` loses only what was running.  A row's key holds everything
that its value hangs on: the program's text, the device, the data's files and the libraries' versions."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from vramscope.errors import RunError
from vramscope.lab.training.places import cache_folder

_OURS = 0x76524C62
"""SQLite's application_id of our files: "vRLb"."""
_TABLE = "CREATE TABLE cells (key TEXT PRIMARY KEY, value TEXT NOT NULL, digest TEXT NOT NULL)"
_PATIENCE_S = 60.0


def key_of(*parts: object) -> str:
    """A key for what hangs on these plain values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


class Kept:
    """Use it as a context manager, in one thread."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        """Opens or makes the file, by default the one in the user's cache; RunError if it cannot be one."""
        self.path = _default() if path is None else Path(path).expanduser()
        if not self.path.absolute().parent.is_dir():
            raise RunError(f"cannot keep cells in {self.path}: there is no folder {self.path.parent}")
        with self._telling():
            self._file = sqlite3.connect(self.path, timeout=_PATIENCE_S, isolation_level=None)
        try:
            with self._telling():
                self._begin()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Kept:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def get(self, key: str) -> dict[str, Any] | None:
        """The value of a key; None: it is not known, or its row was changed by somebody and so is worth nothing."""
        with (
            self._telling(),
            closing(self._file.execute("SELECT value, digest FROM cells WHERE key = ?", (key,))) as cursor,
        ):
            row = cursor.fetchone()
        if row is None or _digest(key, row[0]) != row[1]:
            return None
        value: dict[str, Any] = json.loads(row[0])
        return value

    def keys(self) -> list[str]:
        """What it has."""
        with self._telling():
            return [key for (key,) in self._file.execute("SELECT key FROM cells ORDER BY key")]

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keeps a value at once and for good."""
        told = json.dumps(value)
        with self._telling():
            self._file.execute(
                "INSERT OR REPLACE INTO cells VALUES (?, ?, ?)", (key, told, _digest(key, told))
            )

    def _begin(self) -> None:
        self._file.execute("PRAGMA trusted_schema = OFF")
        self._file.execute("BEGIN IMMEDIATE")
        try:
            if not self._made_of() and self._number("application_id") == 0:
                self._file.execute(_TABLE)
                self._file.execute(f"PRAGMA application_id = {_OURS}")
            if self._number("application_id") != _OURS or self._made_of() != [_TABLE]:
                raise RunError(f"{self.path} is no file of `lab train`; choose another one with --out")
            self._file.execute("COMMIT")
        except BaseException:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise

    def _made_of(self) -> list[str]:
        rows = self._file.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        return [sql for (sql,) in rows]

    def _number(self, pragma: str) -> int:
        (found,) = self._file.execute(f"PRAGMA {pragma}").fetchone()
        return int(found)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Turns what SQLite says into a sentence."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise RunError(
                    f"{self.path} is no file of `lab train`; choose another one with --out"
                ) from error
            raise RunError(
                f"cannot keep cells in {self.path}: {error}; choose another place with --out"
            ) from error


def _default() -> Path:
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(
            f"cannot keep cells in {folder}: {error.strerror}; choose another place with --out"
        ) from error
    return folder / "train.sqlite"


def _digest(key: str, told: object) -> str:
    return hashlib.sha256(f"{key}\n{told}".encode("utf-8", "replace")).hexdigest()
