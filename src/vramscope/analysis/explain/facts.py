"""What several questions ask of one trace, computed once: its curves, and where each block and step begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from vramscope.analysis.lookup import complete_steps, span_ends, span_numbers
from vramscope.run.categories import INDEX
from vramscope.run.curves import allocated_curve, live_at, reserved_curve
from vramscope.run.run import Run
from vramscope.run.trace import Blocks, Column, Span, Trace


@dataclass(frozen=True, slots=True)
class Window:
    """The moments of one span: from `first` to before `end`."""

    span: Span
    first: int
    end: int
    step: int
    """The place of its step among the recorded ones, counted from 1; 0: none.  In this package a step is
    always told by its place, so that the next one is one more; `Facts.step_number` has the number."""


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Moments of the steps, each column indexed by a step; where a step has none, the end of the history."""

    forward: Column
    """int64, at which its first forward begins."""
    backward: Column
    """int64, at which its first backward begins."""
    backward_end: Column
    """int64, the one after its last backward."""
    over: Column
    """int64, the one after its last optimizer step."""
    complete: Column
    """bool"""


@dataclass(frozen=True, slots=True)
class Facts:
    """One trace as the questions see it; made by `facts_of`."""

    run: Run
    trace: Trace
    others: tuple[Run, ...]
    """Runs of the same program under other settings."""
    allocated: Column
    """int64[moments]"""
    reserved: Column
    """int64[moments]"""
    windows: tuple[Window, ...]
    """One per span, in order."""
    born_in: Column
    """int64, for each block the number of the span that it was born in; -1: before the history."""
    born_step: Column
    """int64, for each block the step that it was born in; 0: none, or before the history."""
    steps: tuple[int, ...]
    """The complete ones."""
    boundaries: Boundaries
    step_numbers: tuple[int, ...]
    """The program's number of each step."""

    @property
    def blocks(self) -> Blocks:
        """The rows that the masks are of."""
        return self.trace.blocks

    @property
    def peak(self) -> int:
        """The first moment of the highest allocated bytes."""
        return int(np.argmax(self.allocated))

    @property
    def peak_bytes(self) -> int:
        """The highest allocated bytes."""
        return int(self.allocated.max())

    def of(self, *categories: str) -> Column:
        """A mask: the blocks of some categories."""
        found: Column = np.isin(self.blocks.category, [INDEX[each] for each in categories])
        return found

    def born_in_phase(self, *phases: str) -> Column:
        """A mask: the blocks born in spans of these phases."""
        found: Column = np.array([*(each.span.phase in phases for each in self.windows), False])[self.born_in]
        return found

    def has_flag(self, flag: int) -> Column:
        """A mask: the blocks whose `flags` have a bit."""
        found: Column = (self.blocks.flags & flag) != 0
        return found

    def live(self, moment: int) -> Column:
        """Rows of the blocks that are allocated at a moment."""
        return live_at(self.trace, moment)

    def of_phase(self, *phases: str) -> Iterator[Window]:
        """The spans of these phases in which anything happened."""
        return (each for each in self.windows if each.span.phase in phases and each.first < each.end)

    def step_number(self, step: int) -> int:
        """The program's number of a step."""
        return self.step_numbers[step]

    def of_step(self, step: int) -> Iterator[Window]:
        """The spans of a step in which anything happened, without the program's beginning."""
        mine = (each for each in self.windows if each.step == step and each.first < each.end)
        return (each for each in mine if each.span.phase != "init")

    def highest_in(self, windows: Iterable[Window]) -> int | None:
        """The first moment of the highest allocated bytes within some spans; None if nothing happened in them."""
        tops = [each.first + int(np.argmax(self.allocated[each.first : each.end])) for each in windows]
        return max(tops, key=lambda moment: (self.allocated[moment], -moment), default=None)


def facts_of(run: Run, trace: Trace, others: tuple[Run, ...] = ()) -> Facts | None:
    """The facts of a trace; None for one in which nothing was ever allocated."""
    allocated = allocated_curve(trace)
    if not trace.spans or int(allocated.max(initial=0)) <= 0:
        return None
    numbers = (0, *sorted({span.step for span in trace.spans if span.step}))
    windows = _windows(trace, {number: step for step, number in enumerate(numbers)})
    born_in = span_numbers(trace, trace.blocks.born)
    complete = complete_steps(trace, run.report)
    steps = tuple(step for step, number in enumerate(numbers) if step and number in complete)
    return Facts(
        run=run,
        trace=trace,
        others=others,
        allocated=allocated,
        reserved=reserved_curve(trace),
        windows=windows,
        born_in=born_in,
        born_step=np.array([*(window.step for window in windows), 0], np.int64)[born_in],
        steps=steps,
        boundaries=_boundaries(windows, steps, len(numbers) + 1, trace.moments),
        step_numbers=numbers,
    )


def _windows(trace: Trace, steps: dict[int, int]) -> tuple[Window, ...]:
    firsts = [0, *(span.first for span in trace.spans[1:])]
    bounds = zip(trace.spans, firsts, span_ends(trace), strict=True)
    return tuple(Window(span, first, end, steps[span.step or 0]) for span, first, end in bounds)


def _boundaries(windows: tuple[Window, ...], steps: tuple[int, ...], length: int, moments: int) -> Boundaries:
    """`length` has room for a step after the last."""
    firsts = {phase: np.full(length, moments, np.int64) for phase in ("forward", "backward")}
    ends = {phase: np.full(length, -1, np.int64) for phase in ("backward", "optimizer_step")}
    for window in windows:
        phase, step = window.span.phase, window.step
        if phase in firsts:
            firsts[phase][step] = min(firsts[phase][step], window.first)
        if phase in ends:
            ends[phase][step] = window.end
    backward_end, over = (np.where(each < 0, moments, each) for each in ends.values())
    complete = np.isin(np.arange(length), steps)
    return Boundaries(firsts["forward"], firsts["backward"], backward_end, over, complete)
