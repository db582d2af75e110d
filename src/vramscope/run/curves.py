"""Bytes over the moments of a trace: what every sum, peak and plot is made from."""

from __future__ import annotations

import numpy as np

from vramscope.run.categories import CATEGORIES
from vramscope.run.trace import Blocks, Column, Segments, Trace


def allocated_curve(trace: Trace, chosen: Column | None = None) -> Column:
    """int64[moments], the allocated bytes at each moment; only of the chosen rows (a mask) if given."""
    return _curve(trace.blocks, trace.moments, chosen)


def reserved_curve(trace: Trace) -> Column:
    """int64[moments], the reserved bytes at each moment."""
    return _curve(trace.segments, trace.moments, None)


def category_curves(trace: Trace) -> Column:
    """int64[categories, moments], the allocated bytes of each of CATEGORIES at each moment."""
    found = np.zeros((len(CATEGORIES), trace.moments), np.int64)
    for number in np.unique(trace.blocks.category):
        found[number] = allocated_curve(trace, trace.blocks.category == number)
    return found


def live_at(trace: Trace, moment: int) -> Column:
    """int64[…], the rows of the blocks that are allocated at a moment."""
    blocks = trace.blocks
    found: Column = np.flatnonzero((blocks.born <= moment) & (blocks.freed > moment))
    return found


def peak_moment(trace: Trace) -> int | None:
    """The first moment of the highest allocated bytes; None for a trace without events."""
    return int(np.argmax(allocated_curve(trace))) if trace.moments else None


def _curve(table: Blocks | Segments, moments: int, chosen: Column | None) -> Column:
    """Each row adds its bytes where it is born and takes them away where it is freed."""
    born, freed, size = table.born, table.freed, table.size_bytes
    if chosen is not None:
        born, freed, size = born[chosen], freed[chosen], size[chosen]
    change = np.zeros(moments + 1, np.int64)
    np.add.at(change, np.maximum(born, 0), size)
    np.subtract.at(change, np.minimum(freed, moments), size)
    found: Column = np.cumsum(change[:moments])
    return found
