"""Whether a trace's sums close: against each other, and against what torch's own counters said."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vramscope.run.categories import CATEGORIES
from vramscope.run.curves import allocated_curve, category_curves, reserved_curve
from vramscope.run.trace import Column, Trace, rows


def faults_of(trace: Trace) -> list[str]:
    """The sums that do not close, as sentences; empty when all is well."""
    if not rows(trace.blocks) and not trace.moments:
        return []
    allocated, reserved = allocated_curve(trace), reserved_curve(trace)
    return [
        *_shape(trace),
        *_categories(trace, allocated),
        *_within(allocated, reserved),
        *_counters(trace, allocated, reserved),
    ]


def _shape(trace: Trace) -> Iterator[str]:
    blocks, segments = trace.blocks, trace.segments
    for name, table in (("block", blocks), ("segment", segments)):
        if np.any(table.freed < table.born):
            yield f"a {name} was freed before it was allocated"
    if np.any(blocks.returned < blocks.freed):
        yield "a block could be used again before it was freed"
    if np.any(blocks.size_bytes < blocks.requested_bytes):
        yield "a block is smaller than what was asked for"
    if len(segments):
        owner = blocks.segment
        outside = (segments.born[owner] > np.maximum(blocks.born, 0)) | (segments.freed[owner] < blocks.freed)
        if np.any(outside & ~segments.expandable[owner]):
            yield f"{int(np.count_nonzero(outside))} blocks outlive the segment that they lie in"


def _categories(trace: Trace, allocated: Column) -> Iterator[str]:
    if len(trace.blocks) and int(trace.blocks.category.max()) >= len(CATEGORIES):
        yield "a block has a category that does not exist"
        return
    apart = np.flatnonzero(category_curves(trace).sum(axis=0) != allocated)
    if len(apart):
        yield f"at moment {apart[0]} the categories do not sum to allocated {allocated[apart[0]]}"


def _within(allocated: Column, reserved: Column) -> Iterator[str]:
    above = np.flatnonzero(allocated > reserved)
    if len(above):
        at = int(above[0])
        yield f"at moment {at} allocated {allocated[at]} > reserved {reserved[at]}"


def _counters(trace: Trace, allocated: Column, reserved: Column) -> Iterator[str]:
    """Each span's end and peak, as torch counted them and as the blocks add up."""
    ends = [span.first for span in trace.spans[1:]] + [trace.moments]
    for number, (span, end) in enumerate(zip(trace.spans, ends, strict=True)):
        for metric, curve in (("allocated", allocated), ("reserved", reserved)):
            at_start = int(curve[span.first - 1]) if span.first else 0
            within = curve[span.first : end]
            found = {
                "": int(curve[end - 1]) if end else 0,
                "peak_": max(at_start, int(within.max(initial=0))),
            }
            for which, size in found.items():
                told = getattr(span, f"{which}{metric}_bytes")
                if told is not None and told != size:
                    yield f"span {number} ({span.phase}): torch has {which}{metric} {told}, the blocks {size}"
