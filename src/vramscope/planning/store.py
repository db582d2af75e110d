"""Finished cells in a SQLite file: what is known is not computed again, and a kill loses only what was running.

One row for each cell under the versions of the libraries that it ran with.  Rows are JSON and the bytes of
``.vram`` files: reading runs no code and needs no torch.

Kept is what would come out the same again: what fits, what does not, and what fails by its own error.  What
was killed, took too long or lacked a library is not."""

from __future__ import annotations

import json
import os
from functools import cached_property
from types import TracebackType

from vramscope.errors import RunError
from vramscope.planning.cell import Cell
from vramscope.planning.kept import outcome_from, row_of
from vramscope.planning.own_file import Kind, OwnFile
from vramscope.planning.result import Outcome
from vramscope.planning.versions import versions_here

SCHEMA = 1
_PLAN = Kind(
    0x76524D53,  # "vRMS"
    SCHEMA,
    "CREATE TABLE cells (key TEXT NOT NULL, versions TEXT NOT NULL, result TEXT NOT NULL, "
    "run BLOB, unlimited BLOB, digest BLOB NOT NULL, PRIMARY KEY (key, versions))",
    "plan of vramscope",
    "results",
)


class Store:
    """Use it as a context manager, or `close` it.  Any number of threads may use it."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Opens or makes the file; None: nothing outlives this process.  RunError if it cannot be one."""
        self._file = OwnFile(path, _PLAN)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self._count("SELECT count(*) FROM cells")

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def knows(self, cell: Cell) -> bool:
        """Whether `get` would find it, without reading it."""
        query = "SELECT count(*) FROM cells WHERE key = ? AND versions = ?"
        return bool(self._count(query, cell.key, self._versions))

    def get(self, cell: Cell) -> Outcome | None:
        """What came of the cell under the libraries that are installed now; None: it is not known.

        RunError for a row that is damaged."""
        query = "SELECT result, run, unlimited, digest FROM cells WHERE key = ? AND versions = ?"
        row = self._file.row(query, cell.key, self._versions)
        try:
            return None if row is None else outcome_from(row)
        except RunError as error:
            raise RunError(
                f"{self._file.path}: the row of cell {cell.key[:12]} cannot be used: {error}; "
                "move the file away or choose another one with --out"
            ) from error

    def put(self, cell: Cell, outcome: Outcome) -> None:
        """Keeps what came of a cell, at once and for good, if another try would come out the same."""
        if outcome.lasting:
            statement = "INSERT OR IGNORE INTO cells VALUES (?, ?, ?, ?, ?, ?)"
            self._file.row(statement, cell.key, self._versions, *row_of(outcome))

    @cached_property
    def _versions(self) -> str:
        return json.dumps(versions_here(), sort_keys=True)

    def _count(self, query: str, *values: object) -> int:
        row = self._file.row(query, *values)
        assert row is not None
        return int(row[0])
