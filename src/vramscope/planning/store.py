"""Finished cells in a SQLite file: what is known is not computed again, and a kill loses only what was running.

One row for each cell under the versions of the libraries that it ran with.  A row is one transaction, so it
is there whole or not at all.  The journal is SQLite's ordinary one, not a write-ahead log: that would leave
part of what is known in a second file, and does not work on the file systems of clusters.  Several processes
may share a file; each waits for the other.  Rows are JSON and the bytes of ``.vram`` files: reading runs no
code and needs no torch.

Kept is what would come out the same again: what fits, what does not, and what fails by its own error.  What
was killed, took too long or lacked a library is not."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from vramscope.errors import RunError
from vramscope.planning.cell import Cell
from vramscope.planning.kept import outcome_from, row_of
from vramscope.planning.result import Outcome
from vramscope.planning.versions import versions_here

SCHEMA = 1
_OURS = 0x76524D53
"""SQLite's application_id of our files: "vRMS"."""
_TABLE = (
    "CREATE TABLE cells (key TEXT NOT NULL, versions TEXT NOT NULL, result TEXT NOT NULL, "
    "run BLOB, unlimited BLOB, digest BLOB NOT NULL, PRIMARY KEY (key, versions))"
)
_PATIENCE_S = 60.0
"""So long another process's writing is waited for; it takes milliseconds."""


class Store:
    """Use it as a context manager, or `close` it.  Any number of threads may use it."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Opens or makes the file; None: nothing outlives this process.  RunError if it cannot be one."""
        self._path = None if path is None else Path(path)
        self._lock = threading.Lock()
        if self._path is not None and not self._path.absolute().parent.is_dir():
            raise RunError(f"cannot keep results in {self._path}: there is no folder {self._path.parent}")
        with self._telling():
            self._file = sqlite3.connect(
                ":memory:" if self._path is None else self._path,
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

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        with self._lock, self._telling():
            count: int = self._row("SELECT count(*) FROM cells")[0]
            return count

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._file.close()

    def knows(self, cell: Cell) -> bool:
        """Whether `get` would find it, without reading it."""
        with self._lock, self._telling():
            query = "SELECT count(*) FROM cells WHERE key = ? AND versions = ?"
            return bool(self._row(query, cell.key, self._versions)[0])

    def get(self, cell: Cell) -> Outcome | None:
        """What came of the cell under the libraries that are installed now; None: it is not known.

        RunError for a row that is damaged."""
        query = "SELECT result, run, unlimited, digest FROM cells WHERE key = ? AND versions = ?"
        with self._lock, self._telling():
            row = self._file.execute(query, (cell.key, self._versions)).fetchone()
        try:
            return None if row is None else outcome_from(row)
        except RunError as error:
            raise RunError(
                f"{self._path}: the row of cell {cell.key[:12]} cannot be used: {error}; "
                "move the file away or choose another one with --out"
            ) from error

    def put(self, cell: Cell, outcome: Outcome) -> None:
        """Keeps what came of a cell, at once and for good, if another try would come out the same."""
        if not outcome.lasting:
            return
        with self._lock, self._telling():
            self._file.execute(
                "INSERT OR IGNORE INTO cells VALUES (?, ?, ?, ?, ?, ?)",
                (cell.key, self._versions, *row_of(outcome)),
            )

    @cached_property
    def _versions(self) -> str:
        return json.dumps(versions_here(), sort_keys=True)

    def _begin(self) -> None:
        """Makes an empty file ours, and sees that another one is; it also shows whether it can be written."""
        self._file.execute("PRAGMA trusted_schema = OFF")
        self._file.execute("BEGIN IMMEDIATE")
        try:
            if self._is_empty():
                self._file.execute(_TABLE)
                self._file.execute(f"PRAGMA application_id = {_OURS}")
                self._file.execute(f"PRAGMA user_version = {SCHEMA}")
            self._require_ours()
            self._file.execute("COMMIT")
        except BaseException:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise

    def _is_empty(self) -> bool:
        """Nobody has put anything into it, nor claimed it."""
        return self._made_of() == set() and self._row("PRAGMA application_id") == (0,)

    def _require_ours(self) -> None:
        if self._row("PRAGMA application_id") != (_OURS,):
            raise RunError(f"{self._path} is a database of another program; choose another file with --out")
        (version,) = self._row("PRAGMA user_version")
        if version != SCHEMA:
            raise RunError(
                f"{self._path} is of another version of vramscope (its schema is {version}, ours is {SCHEMA}); "
                "choose another file with --out"
            )
        if self._made_of() != {_TABLE}:
            raise RunError(
                f"{self._path} has other tables than vramscope makes; choose another file with --out"
            )

    def _made_of(self) -> set[str]:
        """The statements that made its tables, views and triggers."""
        rows = self._file.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {sql for (sql,) in rows}

    def _row(self, query: str, *values: object) -> tuple[Any, ...]:
        with closing(self._file.execute(query, values)) as cursor:
            found: tuple[Any, ...] = cursor.fetchone()
        return found

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Turns what SQLite says into a sentence."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise RunError(
                    f"{self._path} is no plan of vramscope; choose another file with --out"
                ) from error
            raise RunError(
                f"cannot keep results in {self._path}: {error}; choose another place with --out"
            ) from error
