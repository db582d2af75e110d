"""A SQLite file of ours with one table, which others may share, kill and break.

A row is one transaction, so it is there whole or not at all.  The journal is SQLite's ordinary one, not a
write-ahead log: that would leave part of what is known in a second file, and does not work on the file
systems of clusters.  Several processes may share a file; each waits for the other."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vramscope.errors import RunError

_PATIENCE_S = 60.0
"""So long another process's writing is waited for; it takes milliseconds."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What kind of file it is."""

    application_id: int
    """SQLite's, by which a file is known for ours."""
    schema: int
    table: str
    """The statement that makes its table."""
    what: str
    """``plan of vramscope``: what a file that is none is said not to be."""
    kept: str
    """``results``: what cannot be kept where it cannot be written."""


class OwnFile:
    """Any number of threads may use it; one at a time does."""

    def __init__(self, path: str | os.PathLike[str] | None, kind: Kind) -> None:
        """Opens or makes the file; None: nothing outlives this process.  RunError if it cannot be one."""
        self.path, self.kind = None if path is None else Path(path), kind
        self._lock = threading.Lock()
        if self.path is not None and not self.path.absolute().parent.is_dir():
            raise RunError(f"cannot keep {kind.kept} in {self.path}: there is no folder {self.path.parent}")
        with self._telling():
            self._file = sqlite3.connect(
                ":memory:" if self.path is None else self.path,
                timeout=_PATIENCE_S,
                isolation_level=None,  # each statement is a transaction
                check_same_thread=False,
            )
        try:
            with self._telling():
                self._begin()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._file.close()

    def row(self, query: str, *values: object) -> tuple[Any, ...] | None:
        """The first row of what is asked, or what a statement without rows leaves: None.  RunError if it fails."""
        with self._lock, self._telling():
            return self._row(query, *values)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows; RunError if it fails."""
        with self._lock, self._telling(), closing(self._file.execute(query, values)) as cursor:
            return cursor.fetchall()

    def _begin(self) -> None:
        """Makes an empty file ours, and sees that another one is; it also shows whether it can be written."""
        self._file.execute("PRAGMA trusted_schema = OFF")
        self._file.execute("BEGIN IMMEDIATE")
        try:
            if self._is_empty():
                self._file.execute(self.kind.table)
                self._file.execute(f"PRAGMA application_id = {self.kind.application_id}")
                self._file.execute(f"PRAGMA user_version = {self.kind.schema}")
            self._require_ours()
            self._file.execute("COMMIT")
        except BaseException:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise

    def _is_empty(self) -> bool:
        """Nobody has put anything into it, nor claimed it."""
        return self._made_of() == set() and self._number("application_id") == 0

    def _require_ours(self) -> None:
        if self._number("application_id") != self.kind.application_id:
            raise RunError(
                f"{self.path} is no {self.kind.what}, but a database of another kind; choose another file with --out"
            )
        version, ours = self._number("user_version"), self.kind.schema
        if version != ours:
            raise RunError(
                f"{self.path} is of another version of vramscope (its schema is {version}, ours is {ours}); "
                "choose another file with --out"
            )
        if self._made_of() != {self.kind.table}:
            raise RunError(
                f"{self.path} has other tables than vramscope makes; choose another file with --out"
            )

    def _made_of(self) -> set[str]:
        """The statements that made its tables, views and triggers."""
        rows = self._file.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {sql for (sql,) in rows}

    def _number(self, pragma: str) -> int:
        row = self._row(f"PRAGMA {pragma}")
        assert row is not None
        return int(row[0])

    def _row(self, query: str, *values: object) -> tuple[Any, ...] | None:
        with closing(self._file.execute(query, values)) as cursor:
            found: tuple[Any, ...] | None = cursor.fetchone()
        return found

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Turns what SQLite says into a sentence."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise RunError(
                    f"{self.path} is no {self.kind.what}; choose another file with --out"
                ) from error
            raise RunError(
                f"cannot keep {self.kind.kept} in {self.path}: {error}; choose another place with --out"
            ) from error
