"""Memory over the whole run, thinned out for a plot without losing a peak.

The curves are not averaged: moments are chosen, and every curve is told exactly at each of them, so that at
every point of a plot the categories still sum to allocated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vramscope.analysis.lookup import has_clock, phase_of, span_ends
from vramscope.run.categories import CATEGORIES
from vramscope.run.curves import allocated_curve, reserved_curve
from vramscope.run.report import Report
from vramscope.run.trace import Column, Trace

_Key = tuple[str, int | None]
POINTS = 2000
"""As many as a wide screen has columns."""


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch of one phase, or of one step."""

    name: str
    """The phase; "" for a step."""
    step: int | None
    first: int
    """Its first moment, and the one after its last."""
    end: int
    first_us: int | None
    """When it began and ended, microseconds since 1970; None: no clock was recorded."""
    end_us: int | None


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark that the program made."""

    name: str
    moment: int
    """It comes after the event of this moment; -1: before any."""


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """The curves at chosen moments; all columns are of one length."""

    moments: Column
    """int64, rising."""
    times_us: Column | None
    """int64, microseconds since 1970; None: no clock was recorded."""
    allocated: Column
    """int64 bytes, as the next ones."""
    reserved: Column
    categories: dict[str, Column]
    """Those that ever hold anything, in the order of CATEGORIES; at each moment they sum to allocated."""
    phases: tuple[Band, ...]
    steps: tuple[Band, ...]
    marks: tuple[Mark, ...]
    peak_moment: int | None
    """Where allocated is first highest; None: there were no events."""
    peak_phase: str | None
    peak_step: int | None
    capacity_bytes: int | None
    """The memory of the card, of the real one where the virtual one's was unlimited; None: not known."""
    outside_bytes: int | None
    """What of it the allocator cannot have."""
    total_moments: int
    """How many there are in all."""

    @property
    def for_the_allocator_bytes(self) -> int | None:
        """The highest that reserved can be; None: not known."""
        if self.capacity_bytes is None:
            return None
        return self.capacity_bytes - (self.outside_bytes or 0)


def timeline(trace: Trace, points: int = POINTS, report: Report | None = None) -> Timeline:
    """The curves at no more than about `points` moments, and the bands that lie under them.

    Of each stretch of the run its lowest and highest allocated, highest reserved and last moment are kept,
    and the highest moment of each category.  `report` tells the card's memory."""
    allocated, reserved = allocated_curve(trace), reserved_curve(trace)
    present = [number for number in range(len(CATEGORIES)) if np.any(trace.blocks.category == number)]
    curves = {number: allocated_curve(trace, trace.blocks.category == number) for number in present}
    chosen = _chosen(allocated, reserved, list(curves.values()), points)
    peak = int(np.argmax(allocated)) if trace.moments else None
    phase, step = (None, None) if peak is None else phase_of(trace, peak)
    return Timeline(
        moments=chosen,
        times_us=trace.times_us[chosen] if has_clock(trace) else None,
        allocated=allocated[chosen],
        reserved=reserved[chosen],
        categories={CATEGORIES[number]: curve[chosen] for number, curve in curves.items()},
        phases=_phases(trace),
        steps=_steps(trace),
        marks=_marks(trace),
        peak_moment=peak,
        peak_phase=phase,
        peak_step=step,
        capacity_bytes=_capacity(report) if report else None,
        outside_bytes=report.outside.bytes if report else None,
        total_moments=trace.moments,
    )


def _chosen(allocated: Column, reserved: Column, categories: Sequence[Column], points: int) -> Column:
    """The moments that are kept, in order."""
    length = len(allocated)
    if length <= points:
        return np.arange(length, dtype=np.int64)
    edges = np.linspace(0, length, max(1, points // 4) + 1).astype(np.int64)
    found = [0, *(int(np.argmax(curve)) for curve in categories)]
    for first, end in pairwise(edges.tolist()):
        within = allocated[first:end]
        found += [first + int(np.argmin(within)), first + int(np.argmax(within))]
        found += [first + int(np.argmax(reserved[first:end])), end - 1]
    return np.unique(np.array(found, np.int64))


def _capacity(report: Report) -> int:
    return report.card.memory_bytes if report.capacity_bytes is None else report.capacity_bytes


def _phases(trace: Trace) -> tuple[Band, ...]:
    keys = [(span.phase, span.step) for span in trace.spans]
    return tuple(_band(trace, *key, first, last) for key, first, last in _stretches(keys))


def _steps(trace: Trace) -> tuple[Band, ...]:
    keys = [("", span.step) for span in trace.spans]
    bands = (_band(trace, *key, first, last) for key, first, last in _stretches(keys))
    return tuple(band for band in bands if band.step is not None)


def _stretches(keys: Sequence[_Key]) -> Iterator[tuple[_Key, int, int]]:
    """Neighbours of one key: the key, and the numbers of the first and the last."""
    first = 0
    for number, key in enumerate(keys):
        if number + 1 == len(keys) or keys[number + 1] != key:
            yield key, first, number
            first = number + 1


def _band(trace: Trace, name: str, step: int | None, first: int, last: int) -> Band:
    begins, ends = trace.spans[first].first, span_ends(trace)[last]
    if not has_clock(trace):
        return Band(name, step, begins, ends, None, None)
    final = trace.moments - 1
    times = [int(trace.times_us[min(moment, final)]) for moment in (begins, ends)]
    return Band(name, step, begins, ends, *times)


def _marks(trace: Trace) -> tuple[Mark, ...]:
    pairs = zip(trace.spans, span_ends(trace), strict=True)
    return tuple(Mark(span.mark, end - 1) for span, end in pairs if span.mark is not None)
