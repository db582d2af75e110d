"""What every analysis takes for granted of a trace: its numbers point to what there is.

A trace that passes may still not add up (`Run.check` tells), but no analysis of it can go astray."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vramscope.errors import RunError
from vramscope.run.categories import CATEGORIES
from vramscope.run.records import LARGEST
from vramscope.run.trace import BLOCK_TYPES, SEGMENT_TYPES, Blocks, Column, Segments, Tables, Trace

LATEST_US = 253_402_300_799_000_000
"""The last second of the year 9999: the latest that a calendar of Python's knows."""
MOST_ROWS = 1 << 26
"""Of a table and of events: 64 times what a long run of a large model has."""

LAST_DEVICE = 127
"""torch numbers cards with a signed byte (c10::DeviceIndex, c10/core/Device.h)."""


def require_sound(trace: Trace, where: str) -> None:
    """Raises RunError, naming the part, for the first thing that is not as it must be."""
    for fault in _faults(trace):
        raise RunError(f"its {where} {fault}: the run is damaged")


def _faults(trace: Trace) -> Iterator[str]:
    if not 0 <= trace.device <= LAST_DEVICE:
        yield f"card is number {trace.device}, more than torch can count"
    yield from _tables(trace.tables)
    yield from _kinds(trace)
    yield from _times(trace)
    yield from _spans(trace)
    for name, table in (("blocks", trace.blocks), ("segments", trace.segments)):
        yield from _life(name, table, trace.moments)
        yield from _sizes(name, table)
    yield from _numbers(trace)


def _tables(tables: Tables) -> Iterator[str]:
    """Row 0 of three tables says "none"."""
    if not tables.modules or tables.modules[0].path:
        yield "modules do not begin with that of no module"
    if not tables.names or tables.names[0]:
        yield "names do not begin with the empty one"
    if not tables.stacks or tables.stacks[0]:
        yield "stacks do not begin with the empty one"
    used = np.array([frame for stack in tables.stacks for frame in stack], np.int64)
    if _outside(used, len(tables.frames)):
        yield f"stacks name a frame that is not among its {len(tables.frames)}"


def _kinds(trace: Trace) -> Iterator[str]:
    for name, table, kinds in (
        ("blocks", trace.blocks, BLOCK_TYPES),
        ("segments", trace.segments, SEGMENT_TYPES),
    ):
        columns = {column: getattr(table, column) for column in kinds}
        for column, kind in kinds.items():
            if columns[column].ndim != 1 or columns[column].dtype != np.dtype(kind):
                yield f"{name} {column} is no column of {np.dtype(kind).name}"
        lengths = {column: len(values) for column, values in columns.items()}
        if len(set(lengths.values())) > 1:
            yield f"{name} have columns of different lengths: {lengths}"
        if lengths["born"] > MOST_ROWS:
            yield f"{name} are more than {MOST_ROWS}"


def _times(trace: Trace) -> Iterator[str]:
    times = trace.times_us
    if trace.moments > MOST_ROWS:
        yield f"events are {trace.moments}, more than {MOST_ROWS}"
    if times.ndim != 1 or times.dtype != np.dtype(np.int64) or len(times) != trace.moments:
        yield f"times are not one for each of {trace.moments} events"
    if _falls(times):
        yield "times go back"
    if _outside(times, LATEST_US):
        yield "times are outside the calendar"
    if any(span.time_us is not None and span.time_us >= LATEST_US for span in trace.spans):
        yield "spans begin at times outside the calendar"


def _spans(trace: Trace) -> Iterator[str]:
    firsts = np.array([span.first for span in trace.spans], np.int64)
    if not np.any(firsts[:1] == 0):
        yield "spans do not begin with the first event"
    if _falls(firsts) or _outside(firsts, trace.moments + 1):
        yield f"spans do not begin one after the other within {trace.moments} events"
    if any(span.stack >= len(trace.tables.stacks) for span in trace.spans):
        yield "spans name a stack that is not there"


def _life(name: str, table: Blocks | Segments, moments: int) -> Iterator[str]:
    """Born before it is freed, both within the history."""
    if _outside(table.born + 1, moments + 1):
        yield f"{name} are born outside the {moments} events"
    if _outside(table.freed, moments + 1) or np.any(table.freed < table.born):
        yield f"{name} are freed outside the {moments} events, or before they are born"
    if isinstance(table, Segments):
        return
    if _falls(table.born):
        yield f"{name} are not in the order of their birth"
    if _outside(table.returned, moments + 1) or np.any(table.returned < table.freed):
        yield f"{name} are returned outside the {moments} events, or before they are freed"


def _sizes(name: str, table: Blocks | Segments) -> Iterator[str]:
    sizes = [table.size_bytes, table.requested_bytes] if isinstance(table, Blocks) else [table.size_bytes]
    if any(_outside(size, LARGEST) or size.sum(dtype=np.float64) > LARGEST for size in sizes):
        yield f"{name} have sizes that cannot be"
    if len(table) and int(table.address.max()) > LARGEST:
        yield f"{name} have addresses that cannot be"


def _numbers(trace: Trace) -> Iterator[str]:
    blocks, segments, tables = trace.blocks, trace.segments, trace.tables
    for name, column, length in (
        ("blocks category", blocks.category, len(CATEGORIES)),
        ("blocks module", blocks.module, len(tables.modules)),
        ("blocks name", blocks.name, len(tables.names)),
        ("blocks stack", blocks.stack, len(tables.stacks)),
        ("blocks stream", blocks.stream, len(trace.streams)),
        ("blocks segment", blocks.segment, len(segments)),
        ("segments stream", segments.stream, len(trace.streams)),
        ("segments pool", segments.pool, len(trace.pools)),
    ):
        if _outside(column, length):
            yield f"{name} has a number that is not below {length}"


def _falls(column: Column) -> bool:
    return bool(np.any(column[1:] < column[:-1]))


def _outside(column: Column, length: int) -> bool:
    """Whether a value is no row of a table of that length."""
    return bool(len(column) and (column.min() < 0 or column.max() >= length))
