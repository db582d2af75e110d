"""Finished cells and predictions in a small SQLite file: an interrupted grid goes on where it was.

A row's key holds everything that its value hangs on: the program's text, the device, the data's files and the
libraries' versions."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from vramscope.errors import RunError
from vramscope.lab.training.places import cache_folder
from vramscope.planning.own_file import Kind, OwnFile

SCHEMA = 1
_TRAININGS = Kind(
    0x76524C62,  # "vRLb"
    SCHEMA,
    "CREATE TABLE cells (key TEXT PRIMARY KEY, value TEXT NOT NULL, digest TEXT NOT NULL)",
    "file of `lab train`",
    "cells",
)


def key_of(*parts: object) -> str:
    """A key for what hangs on these plain values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


class Kept:
    """Use it as a context manager."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        """Opens or makes the file, by default the one in the user's cache; RunError if it cannot be one."""
        self.path = _default() if path is None else Path(path).expanduser()
        self._file = OwnFile(self.path, _TRAININGS)

    def __enter__(self) -> Kept:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def get(self, key: str) -> dict[str, Any] | None:
        """The value of a key; None: it is not known, or its row was changed by somebody and so is worth nothing."""
        row = self._file.row("SELECT value, digest FROM cells WHERE key = ?", key)
        if row is None or _digest(key, row[0]) != row[1]:
            return None
        value: dict[str, Any] = json.loads(row[0])
        return value

    def keys(self) -> list[str]:
        """What it has."""
        return [key for (key,) in self._file.rows("SELECT key FROM cells ORDER BY key")]

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keeps a value at once and for good."""
        told = json.dumps(value)
        self._file.row("INSERT OR REPLACE INTO cells VALUES (?, ?, ?)", key, told, _digest(key, told))


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
