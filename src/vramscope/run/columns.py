"""The columns of a trace as files of an archive, and back.

Numbers that go up, or lie close to another column's, are kept as what they differ by: small numbers that
repeat from step to step, so that a run of a million events is a few megabytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from vramscope.run.arrays import pack, steps_of, sums_of, unpack
from vramscope.run.trace import BLOCK_TYPES, SEGMENT_TYPES, Blocks, Column, Segments, Trace

Read = Callable[[str], bytes]
"""The bytes of a file in the archive, by name."""

_BASES = {"requested_bytes": "size_bytes", "freed": "born", "returned": "freed"}
"""These are kept as their difference from another column of the same table."""
_TABLES: dict[str, tuple[Any, Mapping[str, str]]] = {
    "blocks": (Blocks, BLOCK_TYPES),
    "segments": (Segments, SEGMENT_TYPES),
}


def column_files(trace: Trace, folder: str) -> Iterator[tuple[str, bytes]]:
    """Each column's file: its name in the archive and its bytes."""
    yield f"{folder}/times_us.npy", pack(steps_of(trace.times_us))
    for table, (_, kinds) in _TABLES.items():
        columns = {name: getattr(getattr(trace, table), name) for name in kinds}
        for name, column in columns.items():
            yield f"{folder}/{table}/{name}.npy", pack(_stored(name, column, columns))


def with_columns(trace: Trace, folder: str, read: Read) -> Trace:
    """The trace with the columns that `column_files` wrote."""
    tables = {table: _table(table, folder, read) for table in _TABLES}
    times = sums_of(_read(f"{folder}/times_us", "<i8", read))
    return replace(trace, times_us=times, **tables)


def _table(table: str, folder: str, read: Read) -> Any:
    make, kinds = _TABLES[table]
    columns: dict[str, Column] = {}
    for name in sorted(kinds, key=_after_its_base):
        kind = "<i8" if name in _BASES else kinds[name]
        stored = _read(f"{folder}/{table}/{name}", kind, read)
        columns[name] = _restored(name, stored, columns)
    return make(**columns)


def _read(name: str, kind: str, read: Read) -> Column:
    return unpack(read(f"{name}.npy"), kind, name)


def _stored(name: str, column: Column, columns: Mapping[str, Column]) -> Column:
    if name in _BASES:
        return column - columns[_BASES[name]]
    return steps_of(column) if name == "born" else column


def _restored(name: str, stored: Column, columns: Mapping[str, Column]) -> Column:
    if name in _BASES:
        return stored + columns[_BASES[name]]
    return sums_of(stored) if name == "born" else stored


def _after_its_base(name: str) -> int:
    return 0 if name not in _BASES else 1 + _after_its_base(_BASES[name])
