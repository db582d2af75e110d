"""A Run as a table for spreadsheets and data frames: one line per block that the allocator gave out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import numpy as np

from vramscope.analysis.lookup import has_clock, lines_of, span_numbers
from vramscope.run.categories import CATEGORIES
from vramscope.run.run import Run
from vramscope.run.trace import Column, Frame, Span, Trace

COLUMNS = (
    *("process", "device", "category", "module", "name", "file", "line", "function", "phase", "step"),
    *("requested_bytes", "size_bytes", "born", "freed", "born_us", "freed_us"),
    *("address", "stream", "segment_address", "segment_bytes", "pool"),
)
"""In this order (docs/export.md)."""

Cell = str | int | None


def run_csv(run: Run) -> str:
    """The table with a line of headings, in the order in which blocks were given out; unknown cells are empty."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for trace in run.traces:
        table.writerows(_rows(trace))
    return text.getvalue()


def _rows(trace: Trace) -> Iterator[tuple[Cell, ...]]:
    blocks, segments, tables = trace.blocks, trace.segments, trace.tables
    lines, line_of = lines_of(tables)
    lines_cells = [_line(each) for each in lines]
    spans = [_span(each) for each in trace.spans]
    owner = blocks.segment
    columns = (
        *(blocks.category, blocks.module, blocks.name, line_of[blocks.stack]),
        *(span_numbers(trace, blocks.born), blocks.requested_bytes, blocks.size_bytes),
        *(blocks.born, blocks.freed, blocks.address, blocks.stream),
        *(segments.address[owner], segments.size_bytes[owner], segments.pool[owner]),
    )
    times = _times(trace)
    for row in zip(*(column.tolist() for column in columns), strict=True):
        category, module, name, line, span, requested, size, born, freed, address, stream, *segment = row
        yield (
            *(trace.pid, trace.device, CATEGORIES[category], tables.modules[module].path, tables.names[name]),
            *lines_cells[line],
            *(spans[span] if span >= 0 else (None, None)),
            *(requested, size),
            *(born if born >= 0 else None, freed if freed < trace.moments else None),
            *(_time(times, born), _time(times, freed)),
            *(f"{address:#x}", trace.streams[stream], f"{segment[0]:#x}", segment[1]),
            "/".join(map(str, trace.pools[segment[2]])),
        )


def _line(frame: Frame | None) -> tuple[Cell, Cell, Cell]:
    return (None, None, None) if frame is None else (frame.file, frame.line, frame.function)


def _span(span: Span) -> tuple[Cell, Cell]:
    return span.phase, span.step


def _times(trace: Trace) -> list[int]:
    """Microseconds since 1970 by moment; none for a history without times."""
    times: Column = trace.times_us if has_clock(trace) else np.empty(0, np.int64)
    return [int(each) for each in times]


def _time(times: list[int], moment: int) -> int | None:
    return times[moment] if 0 <= moment < len(times) else None
