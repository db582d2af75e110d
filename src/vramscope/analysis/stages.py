"""The program's stages, by its own marks or by phases: what each keeps, its peak, and its change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vramscope.analysis.lookup import complete_steps, has_clock, levels, span_ends
from vramscope.run.curves import allocated_curve, reserved_curve
from vramscope.run.report import Report
from vramscope.run.trace import Column, Span, Trace

MARKS, PHASES = "marks", "phases"
FIRST, STEADY, HIGHEST, CUT, AFTER, WHOLE = "first", "steady", "highest", "cut", "after", "whole"


@dataclass(frozen=True, slots=True)
class Stage:
    """What happened between two marks, or within one phase of a step."""

    name: str
    """The mark that ended it, or the phase; "" is what follows the last mark."""
    first: int
    """Its first moment."""
    end: int
    """The moment after its last."""
    times: int
    """How often it was entered: a step that accumulates gradients has several forwards."""
    allocated_bytes: int
    """At its end, as the next one."""
    reserved_bytes: int
    peak_allocated_bytes: int
    """The highest within it, what it began with included; as the next one."""
    peak_reserved_bytes: int
    change_bytes: int
    """What it added to allocated, each of its times summed; over all stages the sums close."""
    allocations: int
    time_us: int | None
    """How long it took, on the host's clock; None: not recorded."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Stages that belong together: one step, or the whole run."""

    kind: str
    """first, steady (the last complete step), highest (where allocated peaks), cut (broken off), after (what
    follows the last step), or whole (all of it: by marks, or without a complete step)."""
    step: int | None
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of one trace."""

    by: str
    """marks or phases"""
    stretches: tuple[Stretch, ...]
    peak: tuple[int, int] | None
    """The stretch and the stage in it where allocated first peaks; None if it is not among them."""


def stages(trace: Trace, report: Report | None = None) -> Stages:
    """By marks where there are any: each ends what came since the one before.

    Else by phases, of the first step, of the last complete one, of the one that has the peak, and of what
    follows.  `report` tells which steps were cut off."""
    pieces = _Pieces(trace)
    if any(span.mark is not None for span in trace.spans):
        found = [Stretch(WHOLE, None, pieces.stages(_by_marks(trace.spans)))]
        return Stages(MARKS, tuple(found), _peak(found))
    stretches = [
        Stretch(kind, step, pieces.stages(_by_phase(trace.spans, numbers)))
        for kind, step, numbers in _chosen(trace, report, [peak for peak, _ in pieces.peaks])
        if numbers
    ]
    return Stages(PHASES, tuple(stretches), _peak(stretches))


class _Pieces:
    """The figures of each span, from which those of the stages are put together."""

    def __init__(self, trace: Trace) -> None:
        firsts, ends = [span.first for span in trace.spans], span_ends(trace)
        self.trace = trace
        self.bounds = list(zip(firsts, ends, strict=True))
        self.allocated = levels(trace.blocks, allocated_curve(trace))
        self.reserved = levels(trace.segments, reserved_curve(trace))
        self.peaks = [
            (_within(self.allocated, *bounds), _within(self.reserved, *bounds)) for bounds in self.bounds
        ]
        born = trace.blocks.born
        self.allocations = np.searchsorted(born, ends) - np.searchsorted(born, firsts)

    def stages(self, named: Iterable[tuple[str, Sequence[int]]]) -> tuple[Stage, ...]:
        """The stages that consist of the spans of these numbers."""
        return tuple(self._stage(name, numbers) for name, numbers in named)

    def _stage(self, name: str, numbers: Sequence[int]) -> Stage:
        first, end = self.bounds[numbers[0]][0], self.bounds[numbers[-1]][1]
        bounds = [self.bounds[number] for number in numbers]
        times = [self._time_us(number) for number in numbers]
        known = [time for time in times if time is not None]
        return Stage(
            name=name,
            first=first,
            end=end,
            times=1 + sum(after > before + 1 for before, after in pairwise(numbers)),
            allocated_bytes=int(self.allocated[end]),
            reserved_bytes=int(self.reserved[end]),
            peak_allocated_bytes=max(self.peaks[number][0] for number in numbers),
            peak_reserved_bytes=max(self.peaks[number][1] for number in numbers),
            change_bytes=sum(int(self.allocated[end] - self.allocated[first]) for first, end in bounds),
            allocations=int(sum(self.allocations[number] for number in numbers)),
            time_us=sum(known) if len(known) == len(times) else None,
        )

    def _time_us(self, number: int) -> int | None:
        begins = self._begins_us(number)
        ends = self._begins_us(number + 1)
        return None if begins is None or ends is None else max(0, ends - begins)

    def _begins_us(self, number: int) -> int | None:
        """When a span began; the number after the last is the end of the trace."""
        times, spans = self.trace.times_us, self.trace.spans
        if not has_clock(self.trace):
            return None
        if number == len(spans):
            return int(times[-1])
        told = spans[number].time_us
        return told if told is not None else int(times[min(spans[number].first, len(times) - 1)])


def _within(curve: Column, first: int, end: int) -> int:
    """The highest of a span; as torch's counters have it, what it began with counts."""
    return int(curve[first : end + 1].max())


def _by_marks(spans: Sequence[Span]) -> Iterable[tuple[str, list[int]]]:
    numbers: list[int] = []
    for number, span in enumerate(spans):
        numbers.append(number)
        if span.mark is not None:
            yield span.mark, numbers
            numbers = []
    if numbers:
        yield "", numbers


def _by_phase(spans: Sequence[Span], numbers: Iterable[int]) -> Iterable[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for number in numbers:
        found.setdefault(spans[number].phase, []).append(number)
    return found.items()


def _chosen(
    trace: Trace, report: Report | None, peaks: Sequence[int]
) -> Iterable[tuple[str, int | None, list[int]]]:
    """The stretches that are told: their kind, step and spans."""
    whole = complete_steps(trace, report)
    if not whole:
        cut = report is not None and report.stopped.partial
        yield CUT if cut else WHOLE, None, list(range(len(trace.spans)))
        return
    first, last = whole[0], whole[-1]
    peak = _peak_step(trace, peaks, shown=(first, last))
    after = [n for n, span in enumerate(trace.spans) if span.step is None or span.step > last]
    partial = report is not None and report.stopped.partial
    yield FIRST, first, _of_step(trace, first)
    if peak is not None:
        yield HIGHEST, peak, _of_step(trace, peak)
    if last != first:
        yield STEADY, last, _of_step(trace, last)
    yield (CUT, last + 1, after) if partial else (AFTER, last, after)


def _peak_step(trace: Trace, peaks: Sequence[int], shown: tuple[int, int]) -> int | None:
    """The step that has the peak, if it lies between those that are shown and neither of them is as high."""
    highest = max(peaks, default=0)
    reached = [span.step for span, peak in zip(trace.spans, peaks, strict=True) if peak == highest]
    within = [step for step in reached if step is not None and shown[0] < step < shown[1]]
    return within[0] if within and len(within) == len(reached) else None


def _of_step(trace: Trace, step: int) -> list[int]:
    return [number for number, span in enumerate(trace.spans) if span.step == step]


def _peak(stretches: Sequence[Stretch]) -> tuple[int, int] | None:
    every = [
        (stage.peak_allocated_bytes, -number, -place)
        for number, stretch in enumerate(stretches)
        for place, stage in enumerate(stretch.stages)
    ]
    if not every:
        return None
    _, number, place = max(every)
    return -number, -place
