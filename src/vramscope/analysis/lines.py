"""Memory by source line: what is live at the peak, and what was asked for over the whole run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vramscope.analysis.lookup import BEFORE, lines_of, place, sums
from vramscope.run.categories import CATEGORIES
from vramscope.run.curves import live_at, peak_moment
from vramscope.run.trace import Column, Trace


@dataclass(frozen=True, slots=True)
class LineUse:
    """One line of source, and the blocks that it asked for."""

    where: str | None
    """``train.py:41 in main``; None: blocks without a Python stack, or with torch's own lines alone."""
    text: str
    """The source; "" is not known."""
    user: bool
    """It is the program's own, not a library's."""
    peak_bytes: int
    """Live at the allocated peak."""
    total_bytes: int
    """Allocated over the run, whatever was freed."""
    count: int
    """How many blocks that was."""
    largest_bytes: int
    peak_categories: tuple[tuple[str, int], ...]
    """The bytes of `peak_bytes` by category, the largest first."""
    categories: tuple[tuple[str, int], ...]
    """Those of `total_bytes`."""


@dataclass(frozen=True, slots=True)
class Lines:
    """All lines that asked for memory, those with most at the peak first."""

    moment: int
    allocated_bytes: int
    """At that moment, the allocated peak; the lines' `peak_bytes` sum to it."""
    total_bytes: int
    """Allocated over the run; the lines' `total_bytes` sum to it."""
    rows: tuple[LineUse, ...]


def lines(trace: Trace) -> Lines:
    """The use of each line: the user's innermost one of a stack, else the innermost one outside torch."""
    blocks = trace.blocks
    frames, of_stack = lines_of(trace.tables)
    keys, length = of_stack[blocks.stack], len(frames)
    highest = peak_moment(trace)
    moment = BEFORE if highest is None else highest
    live = live_at(trace, moment)
    at_peak = sums(keys[live], blocks.size_bytes[live], length)
    total, count = sums(keys, blocks.size_bytes, length), np.bincount(keys, minlength=length)
    largest = np.zeros(length, np.int64)
    np.maximum.at(largest, keys, blocks.size_bytes)
    mix, mix_at_peak = (
        sums(
            keys[rows] * len(CATEGORIES) + blocks.category[rows],
            blocks.size_bytes[rows],
            length * len(CATEGORIES),
        ).reshape(length, -1)
        for rows in (slice(None), live)
    )
    found = []
    for each in np.lexsort((-total, -at_peak)):
        if not count[each]:
            continue
        frame = frames[each]
        found.append(
            LineUse(
                where=None if frame is None else place(frame),
                text="" if frame is None else frame.text,
                user=frame is not None and frame.user,
                peak_bytes=int(at_peak[each]),
                total_bytes=int(total[each]),
                count=int(count[each]),
                largest_bytes=int(largest[each]),
                peak_categories=_mix(mix_at_peak[each]),
                categories=_mix(mix[each]),
            )
        )
    return Lines(moment, int(at_peak.sum()), int(total.sum()), tuple(found))


def _mix(sizes: Column) -> tuple[tuple[str, int], ...]:
    order = np.argsort(-sizes, kind="stable")
    return tuple((CATEGORIES[each], int(sizes[each])) for each in order if sizes[each])
