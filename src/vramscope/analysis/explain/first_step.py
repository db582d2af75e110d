"""Why the first step needs another amount of memory than the later ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import Evidence, Finding
from vramscope.analysis.explain.places import lines_by_weight, moment_place
from vramscope.analysis.lookup import sums
from vramscope.run.categories import (
    ACTIVATION,
    AUTOCAST_CACHE,
    BUFFER,
    CATEGORIES,
    GRADIENT,
    INPUT,
    OPTIMIZER_STATE,
    PARAMETER,
    TEMPORARY,
    UNKNOWN,
    WORKSPACE,
    plural,
)
from vramscope.run.trace import Column
from vramscope.units import format_bytes

LEAST_SHARE = 0.01
"""Steps that differ by a smaller part of the peak are alike; of the difference, it is not told."""
_REASONS = {
    OPTIMIZER_STATE: "the optimizer makes its states in its first step, when forward and backward are over",
    GRADIENT: "those of the step before are still there",
    WORKSPACE: "libraries make them at their first call, and keep them",
    ACTIVATION: "results of the step before are still referred to",
    INPUT: "the batch of the step before is still referred to",
    TEMPORARY: "results of the step before are still referred to",
    UNKNOWN: "from the step before",
    AUTOCAST_CACHE: "casts of the step before are still cached",
}
"""Why a later step may have more of a category; of all but the states and workspaces only if it was there before."""


_LASTING = (PARAMETER, BUFFER, OPTIMIZER_STATE, WORKSPACE)


def first_step_differs(facts: Facts) -> Iterator[Finding]:
    """The peak of step 1 against that of the last complete step, by category."""
    if len(facts.steps) < 2:
        return
    early, late = facts.steps[0], facts.steps[-1]
    moments = facts.highest_in(facts.of_step(early)), facts.highest_in(facts.of_step(late))
    if moments[0] is None or moments[1] is None:
        return
    before, after = (int(facts.allocated[moment]) for moment in moments)
    if abs(after - before) <= LEAST_SHARE * facts.peak_bytes:
        return
    yield _finding(facts, (early, late), (moments[0], moments[1]), before, after)


def _finding(
    facts: Facts, steps: tuple[int, int], moments: tuple[int, int], before: int, after: int
) -> Finding:
    lower = "lower" if before < after else "higher"
    places = [moment_place(facts, moment) for moment in moments]
    carried = _carried(facts, moments[1], steps[1])
    early, late = map(facts.step_number, steps)
    return Finding(
        "first_step",
        f"Why is step {early} {format_bytes(abs(after - before))} {lower} than step {late}?",
        f"Allocated was highest at {format_bytes(before)} {places[0]}, "
        f"and at {format_bytes(after)} {places[1]}. What is live differs by:",
        abs(after - before),
        evidence=tuple(_changes(facts, moments, carried)),
        where=lines_by_weight(facts, carried),
    )


def _changes(facts: Facts, moments: tuple[int, int], carried: Column) -> Iterator[Evidence]:
    """The categories that differ, those of most bytes first; with the small ones as one they add up."""
    early, late = (_by_category(facts, facts.live(moment)) for moment in moments)
    change, old = late - early, _by_category(facts, carried)
    large = abs(change) >= LEAST_SHARE * abs(change.sum())
    for number in np.argsort(-abs(change), kind="stable")[: np.count_nonzero(large)]:
        note = _reason(CATEGORIES[number], int(change[number]), bool(old[number]))
        yield Evidence(plural(CATEGORIES[number]), int(change[number]), note, is_change=True)
    if rest := int(change[~large].sum()):
        yield Evidence("other", rest, is_change=True)


def _by_category(facts: Facts, rows: Column) -> Column:
    return sums(facts.blocks.category[rows], facts.blocks.size_bytes[rows], len(CATEGORIES))


def _carried(facts: Facts, moment: int, step: int) -> Column:
    """Rows of what is live at a moment though an earlier step made it, but for what is meant to last."""
    rows = facts.live(moment)
    born = facts.born_step[rows]
    lasting = (facts.of(*_LASTING) | facts.born_in_phase("init"))[rows]
    found: Column = rows[(born > 0) & (born < step) & ~lasting]
    return found


def _reason(category: str, change: int, carried: bool) -> str:
    if change < 0 or not (carried or category in (OPTIMIZER_STATE, WORKSPACE)):
        return ""
    return _REASONS.get(category, "")
