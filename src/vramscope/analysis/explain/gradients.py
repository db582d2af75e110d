"""Gradients that are kept while nobody needs them: through the next forward, or through an evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vramscope.analysis.explain.facts import Facts, Window
from vramscope.analysis.explain.finding import RECORDED, WASTE, Finding, Remedy
from vramscope.analysis.explain.places import moment_place
from vramscope.analysis.explain.savings import Change
from vramscope.analysis.lookup import sums
from vramscope.run.categories import GRADIENT, TEMPORARY
from vramscope.run.trace import Column
from vramscope.units import format_bytes

LEAST_SHARE = 0.005
"""Of the peak; gradients that do not make it higher are no waste."""
SET_TO_NONE = "optimizer.zero_grad(set_to_none=True), the default, right after the step"
EARLIER = "optimizer.zero_grad() right after the step"
_ENDLESS = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class _Kept:
    """Gradients of earlier steps that are there when a step's forward begins: one row each time."""

    rows: Column
    steps: Column
    """The steps whose forward finds them."""
    refilled: Column
    """bool, they are filled again by that step's backward, not given up before it."""


def gradients_through_forward(facts: Facts) -> Iterator[Finding]:
    """Gradients of one step that are still there when the next one's forward begins."""
    kept = _kept(facts)
    saved = _saved(facts, kept)
    if saved <= LEAST_SHARE * facts.peak_bytes:
        return
    size = int(sums(kept.steps, facts.blocks.size_bytes[kept.rows], int(kept.steps.max()) + 1).max())
    for_good = bool(kept.refilled.any())
    yield Finding(
        "gradients_through_forward",
        f"Why are {format_bytes(size)} of gradients held through the forward?",
        _story(facts, int(kept.steps.max()), for_good),
        size,
        WASTE,
        remedies=(Remedy(SET_TO_NONE if for_good else EARLIER, saved, RECORDED),),
    )


def gradients_through_evaluation(facts: Facts) -> Iterator[Finding]:
    """Gradients that are there while the model is evaluated."""
    rows = np.flatnonzero(facts.of(GRADIENT))
    kept = [(each, _live_through(facts, rows, each)) for each in facts.of_phase("evaluation")]
    kept = [(window, held) for window, held in kept if len(held)]
    if not kept:
        return
    size = max(int(facts.blocks.size_bytes[held].sum()) for _, held in kept)
    if size <= LEAST_SHARE * facts.peak_bytes:
        return
    change = Change(facts)
    for window, held in kept:
        change.remove(held, window.first, window.end)
    top = facts.highest_in([window for window, _ in kept])
    assert top is not None
    yield Finding(
        "gradients_through_evaluation",
        f"Why are {format_bytes(size)} of gradients held through the evaluation?",
        "Nothing gave them up before the model was evaluated: they wait for the next training step, which begins "
        f"with zero_grad(). The evaluation needs most {moment_place(facts, top)}: "
        f"{format_bytes(int(facts.allocated[top]))}, with them.",
        size,
        WASTE,
        remedies=(Remedy(EARLIER, change.saving().saved_bytes, RECORDED),),
    )


def _kept(facts: Facts) -> _Kept:
    """Of each gradient every step after its own that finds it; most are gone before the next one."""
    blocks, at = facts.blocks, facts.boundaries
    rows = np.flatnonzero(facts.of(GRADIENT) & (facts.born_step > 0))
    steps = facts.born_step[rows] + 1
    found: list[tuple[Column, Column]] = []
    while len(rows):
        there = (steps < len(at.forward)) & (
            blocks.freed[rows] > at.forward[np.minimum(steps, len(at.forward) - 1)]
        )
        rows, steps = rows[there], steps[there]
        told = at.complete[steps] & at.complete[steps - 1]
        found.append((rows[told], steps[told]))
        steps = steps + 1
    every = [np.concatenate([each[index] for each in found] or [rows]) for index in (0, 1)]
    return _Kept(every[0], every[1], blocks.freed[every[0]] > at.backward[every[1]])


def _saved(facts: Facts, kept: _Kept) -> int:
    """Gradients given up at the end of each step, and made anew where backward reaches their module."""
    over = facts.boundaries.over[kept.steps - 1]
    again = np.where(kept.refilled, _made_anew(facts, kept), _ENDLESS)
    return Change(facts).remove(kept.rows, over, again).saving().saved_bytes


def _made_anew(facts: Facts, kept: _Kept) -> Column:
    """int64, for each gradient when a step's backward would have made it.

    What it makes is added to the gradient that is there, and given back then: the first block of the gradient's
    size and module.  Where there is none, no later than the module is reached."""
    blocks = facts.blocks
    rows = np.flatnonzero(facts.born_in_phase("backward"))
    reached = _found(facts, kept, rows, blocks.born[rows], facts.boundaries.backward[kept.steps])
    passing = rows[facts.of(TEMPORARY)[rows]]
    return _found(facts, kept, passing, blocks.freed[passing], reached, sized=True)


def _found(
    facts: Facts, kept: _Kept, rows: Column, moments: Column, without: Column, *, sized: bool = False
) -> Column:
    """int64, for each gradient the moment of the first row of its step and module (and size), else `without`."""
    sizes = (
        np.unique(facts.blocks.requested_bytes, return_inverse=True)[1] if sized else facts.blocks.born * 0
    )
    modules, widths = len(facts.trace.tables.modules), int(sizes.max(initial=0)) + 1

    def keys(steps: Column, chosen: Column) -> Column:
        found: Column = (steps * modules + facts.blocks.module[chosen]) * widths + sizes[chosen]
        return found

    known, first = np.unique(keys(facts.born_step[rows], rows), return_index=True)
    wanted = keys(kept.steps, kept.rows)
    place = np.searchsorted(known, wanted)
    met = np.append(known, -1)[place] == wanted
    return np.where(met, np.append(moments[first], 0)[place], without)


def _live_through(facts: Facts, rows: Column, window: Window) -> Column:
    """Those of the rows that are there from the beginning to the end of a span."""
    blocks = facts.blocks
    found: Column = rows[(blocks.born[rows] < window.first) & (blocks.freed[rows] >= window.end)]
    return found


def _story(facts: Facts, step: int, for_good: bool) -> str:
    before, now = facts.step_number(step - 1), facts.step_number(step)
    if not for_good:
        return f"Those of step {before} were given up only after the forward of step {now} had begun."
    return (
        f"Those of step {before} were still there when step {now} began, and were filled again: "
        "zero_grad(set_to_none=False), or no zero_grad at all. So the forward with all its activations has them too."
    )
