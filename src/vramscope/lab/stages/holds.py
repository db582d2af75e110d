"""What each reading consists of, from the run's trace: live tensors, free parts of segments, cached segments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vramscope.analysis.lookup import span_ends, sums
from vramscope.lab.stages.value import SECOND, Holds
from vramscope.run.categories import ACTIVATION, CATEGORIES, INDEX, PARAMETER, UNKNOWN
from vramscope.run.categories import INPUT as DATA
from vramscope.run.curves import live_at
from vramscope.run.journal import Journal, integer, objects, text
from vramscope.run.trace import Column, Trace


def moments_of(trace: Trace) -> dict[str, int]:
    """By mark, the last moment before it; -1: before the first event."""
    return {
        span.mark: end - 1
        for span, end in zip(trace.spans, span_ends(trace), strict=True)
        if span.mark is not None
    }


def holds_of(trace: Trace) -> dict[str, Holds]:
    """By mark, what is reserved at it."""
    found, before = {}, -1
    for mark, moment in moments_of(trace).items():
        holds = holds_at(trace, moment, before)
        found[mark] = _second(trace, holds, moment, before) if mark == SECOND else holds
        before = moment
    return found


def _second(trace: Trace, holds: Holds, moment: int, before: int) -> Holds:
    """The second model never runs, so the recorder takes it for data that came from the host: it is all that is new."""
    rows = live_at(trace, moment)
    new = (trace.blocks.born[rows] > before) & (trace.blocks.category[rows] == INDEX[DATA])
    size = int(trace.blocks.size_bytes[rows][new].sum())
    live = {
        **holds.live,
        PARAMETER: holds.live.get(PARAMETER, 0) + size,
        DATA: holds.live.get(DATA, 0) - size,
    }
    return replace(holds, live={name: each for name, each in live.items() if each})


def holds_at(trace: Trace, moment: int, before: int) -> Holds:
    """What is reserved at a moment; `before` is the moment of the reading before it."""
    blocks, segments = trace.blocks, trace.segments
    rows = live_at(trace, moment)
    live = sums(blocks.category[rows], blocks.size_bytes[rows], len(CATEGORIES))
    there = (segments.born <= moment) & (segments.freed > moment)
    used = sums(blocks.segment[rows], blocks.size_bytes[rows], len(segments))
    holding = there & (used > 0)
    return Holds(
        live=_named(live),
        unused_bytes=int((segments.size_bytes - used)[holding].sum()),
        cached=_named(_cached(trace, there & (used == 0), moment, before)),
    )


def _cached(trace: Trace, empty: Column, moment: int, before: int) -> Column:
    """int64[CATEGORIES], the empty segments' bytes, each by the category of the largest block that lay in it."""
    blocks, segments = trace.blocks, trace.segments
    lately = np.flatnonzero((blocks.freed > before) & (blocks.freed <= moment))
    lately = lately[np.argsort(blocks.size_bytes[lately], kind="stable")]
    category = np.full(len(segments), INDEX[UNKNOWN])
    category[blocks.segment[lately]] = blocks.category[lately]  # of several the last one stays: the largest
    return sums(category[empty], segments.size_bytes[empty], len(CATEGORIES))


def _named(sizes: Column) -> dict[str, int]:
    return {name: int(size) for name, size in zip(CATEGORIES, sizes, strict=True) if size}


def activations_by_kind(trace: Trace, moment: int) -> dict[str, int]:
    """The live activations' bytes by the class of the module that asked for them, the largest first."""
    rows = live_at(trace, moment)
    rows = rows[trace.blocks.category[rows] == INDEX[ACTIVATION]]
    found: dict[str, int] = {}
    for module, size in zip(
        trace.blocks.module[rows].tolist(), trace.blocks.size_bytes[rows].tolist(), strict=True
    ):
        kind = trace.tables.modules[module].kind
        found[kind] = found.get(kind, 0) + size
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def retries_of(journal: Journal) -> dict[str, int]:
    """By mark, how often the allocator gave its cache back to find room since the mark before."""
    return dict(_retries(journal))


def _retries(journal: Journal) -> Iterator[tuple[str, int]]:
    count = 0
    for entry in journal.of("span"):
        count += sum(integer(device, "retries") or 0 for device in objects(entry, "devices"))
        if mark := text(entry, "mark"):
            yield mark, count
            count = 0
