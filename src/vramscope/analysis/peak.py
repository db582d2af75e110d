"""What was live at one moment, by category, module and source line: the allocated peak, unless told otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vramscope.analysis.lookup import (
    BEFORE,
    frame_of,
    levels,
    line_of,
    lines_of,
    module_path,
    phase_of,
    place,
    span_numbers,
    span_of,
    sums,
)
from vramscope.errors import UsageError
from vramscope.run.categories import CATEGORIES
from vramscope.run.curves import allocated_curve, live_at, reserved_curve
from vramscope.run.report import Report
from vramscope.run.trace import Column, Trace

LARGEST = 50
"""So many of the largest blocks are kept."""


@dataclass(frozen=True, slots=True)
class Share:
    """The live blocks of one category, module or line."""

    name: str
    """"" where there is none: a block without a module, or without a line."""
    size_bytes: int
    blocks: int
    text: str = ""
    """Of a line: its source."""


@dataclass(frozen=True, slots=True)
class LiveBlock:
    """One block, and where it comes from; it stands for those like it, of which it is the first."""

    size_bytes: int
    requested_bytes: int
    count: int
    """So many live blocks have its size, category and line and were born in the same span, itself included."""
    category: str
    name: str
    """The tensor's; "" is not known."""
    module: str
    line: str | None
    born: int
    """The moment that it was allocated; -1: before the history began."""
    phase: str | None
    """That of its birth."""
    step: int | None


@dataclass(frozen=True, slots=True)
class Peak:
    """All that is known of one moment."""

    moment: int
    """-1: a trace without events, which knows the state that it was taken in."""
    time_us: int | None
    is_peak: bool
    """Allocated was never higher, and not as high before."""
    phase: str | None
    step: int | None
    module: str
    """The module that the block was for with which this moment began; "" is not known."""
    line: str | None
    """The line that asked for it."""
    line_text: str
    """Its source; "" is not known."""
    allocated_bytes: int
    reserved_bytes: int
    outside_bytes: int | None
    categories: tuple[Share, ...]
    """Those that hold anything, the largest first, as modules and lines."""
    modules: tuple[Share, ...]
    lines: tuple[Share, ...]
    largest: tuple[LiveBlock, ...]
    """Equal ones once, at most LARGEST."""
    blocks: int
    """How many were live."""

    @property
    def cached_bytes(self) -> int:
        """Reserved from the card, but in no live block."""
        return self.reserved_bytes - self.allocated_bytes

    @property
    def process_total_bytes(self) -> int | None:
        """Reserved + outside; None where outside is not known."""
        return None if self.outside_bytes is None else self.reserved_bytes + self.outside_bytes

    def check(self) -> tuple[str, ...]:
        """The sums that do not close, as sentences; empty when all is well."""
        faults = [
            f"the {name} sum to {found}, allocated is {self.allocated_bytes}"
            for name in ("categories", "modules", "lines")
            if (found := sum(each.size_bytes for each in getattr(self, name))) != self.allocated_bytes
        ]
        if self.cached_bytes < 0:
            faults.append(f"allocated {self.allocated_bytes} > reserved {self.reserved_bytes}")
        return tuple(faults)


def peak(trace: Trace, moment: int | None = None, report: Report | None = None) -> Peak | None:
    """What is live at the allocated peak, or at another moment; None for a trace that holds nothing.

    `report` tells what is outside the allocator where the trace does not.  UsageError for a moment that
    the trace does not have."""
    if not trace.moments and not len(trace.blocks):
        return None
    allocated, reserved = (
        levels(trace.blocks, allocated_curve(trace)),
        levels(trace.segments, reserved_curve(trace)),
    )
    highest = int(np.argmax(allocated[1:])) if trace.moments else BEFORE
    at = highest if moment is None else _checked(trace, moment)
    rows = live_at(trace, at)
    first = _begun_with(trace, at)
    frame = None if first is None else frame_of(trace.tables, int(trace.blocks.stack[first]))
    phase, step = phase_of(trace, at)
    return Peak(
        moment=at,
        time_us=int(trace.times_us[at]) if at >= 0 else None,
        is_peak=at == highest,
        phase=phase,
        step=step,
        module=module_path(trace, first) if first is not None else "",
        line=None if frame is None else place(frame),
        line_text="" if frame is None else frame.text,
        allocated_bytes=int(allocated[at + 1]),
        reserved_bytes=int(reserved[at + 1]),
        outside_bytes=_outside(trace, at, report),
        categories=_shares(CATEGORIES, trace.blocks.category[rows], trace.blocks.size_bytes[rows]),
        modules=_by_module(trace, rows),
        lines=_by_line(trace, rows),
        largest=_largest(trace, rows),
        blocks=len(rows),
    )


def _checked(trace: Trace, moment: int) -> int:
    lowest = 0 if trace.moments else BEFORE
    if not lowest <= moment < max(trace.moments, lowest + 1):
        raise UsageError(f"there is no moment {moment}: the run has {lowest} to {trace.moments - 1}")
    return moment


def _begun_with(trace: Trace, moment: int) -> int | None:
    """The block that this very event gave out."""
    row = int(np.searchsorted(trace.blocks.born, moment))
    return row if moment >= 0 and row < len(trace.blocks) and trace.blocks.born[row] == moment else None


def _outside(trace: Trace, moment: int, report: Report | None) -> int | None:
    span = span_of(trace, moment)
    if span is not None and span.outside_bytes is not None:
        return span.outside_bytes
    return report.outside.bytes if report else None


def _by_module(trace: Trace, rows: Column) -> tuple[Share, ...]:
    """Modules of the same path (two models of one class) are one."""
    paths: dict[str, int] = {}
    numbers = np.array([paths.setdefault(each.path, len(paths)) for each in trace.tables.modules], np.int64)
    return _shares(list(paths), numbers[trace.blocks.module[rows]], trace.blocks.size_bytes[rows])


def _by_line(trace: Trace, rows: Column) -> tuple[Share, ...]:
    frames, numbers = lines_of(trace.tables)
    names = ["" if frame is None else place(frame) for frame in frames]
    texts = ["" if frame is None else frame.text for frame in frames]
    return _shares(names, numbers[trace.blocks.stack[rows]], trace.blocks.size_bytes[rows], texts)


def _shares(
    names: Sequence[str], keys: Column, sizes: Column, texts: Sequence[str] | None = None
) -> tuple[Share, ...]:
    """Those that hold anything, the largest first."""
    size = sums(keys, sizes, len(names))
    blocks = np.bincount(keys, minlength=len(names))
    order = [int(each) for each in np.argsort(-size, kind="stable") if blocks[each]]
    texts = texts or [""] * len(names)
    return tuple(Share(names[each], int(size[each]), int(blocks[each]), texts[each]) for each in order)


def _largest(trace: Trace, rows: Column) -> tuple[LiveBlock, ...]:
    """One of each kind of block, the largest first."""
    blocks = trace.blocks
    _, lines = lines_of(trace.tables)
    kinds = [blocks.size_bytes, blocks.category, lines[blocks.stack], span_numbers(trace, blocks.born)]
    _, first, count = np.unique(
        np.stack([kind[rows] for kind in kinds]), axis=1, return_index=True, return_counts=True
    )
    chosen = np.lexsort((first, -blocks.size_bytes[rows[first]]))[:LARGEST]
    return tuple(_block(trace, int(rows[first[each]]), int(count[each])) for each in chosen)


def _block(trace: Trace, row: int, count: int) -> LiveBlock:
    blocks = trace.blocks
    born = int(blocks.born[row])
    phase, step = phase_of(trace, born)
    return LiveBlock(
        size_bytes=int(blocks.size_bytes[row]),
        requested_bytes=int(blocks.requested_bytes[row]),
        count=count,
        category=CATEGORIES[int(blocks.category[row])],
        name=trace.tables.names[int(blocks.name[row])],
        module=module_path(trace, row),
        line=line_of(trace.tables, int(blocks.stack[row])),
        born=born,
        phase=phase,
        step=step,
    )
