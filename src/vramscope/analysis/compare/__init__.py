"""Two runs side by side: which figures differ, by how much, in which modules, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from vramscope.analysis.compare.conditions import conditions
from vramscope.analysis.compare.figures import Comparison, Pair, Reason
from vramscope.analysis.compare.modules import module_pairs
from vramscope.analysis.compare.reasons import reasons
from vramscope.analysis.compare.residual import residual_reasons
from vramscope.analysis.compare.side import Side, about, phases_of, side_of, totals_of
from vramscope.run.categories import CATEGORIES
from vramscope.run.run import MEASURED, PREDICTED, Run

_PHASES = ("init", "forward", "backward", "optimizer_step", "zero_grad", "evaluation", "other")


def compare(a: Run, b: Run) -> Comparison:
    """What changes from A to B; where one is predicted and the other measured, what the prediction missed.

    Of a run of several processes or cards the history of the one that allocated most is compared."""
    one, other = side_of(a), side_of(b)
    found = Comparison(
        a=about(one),
        b=about(other),
        is_residual={a.origin, b.origin} == {PREDICTED, MEASURED},
        conditions=conditions(one, other),
        totals=_pairs(totals_of(one), totals_of(other)),
        categories=_categories(_at_peak(one), _at_peak(other)),
        highest=_categories(one.highest, other.highest),
        phases=tuple(sorted(_pairs(phases_of(one), phases_of(other)), key=_order)),
        modules=module_pairs(one.layers, other.layers) if one.layers and other.layers else (),
        reasons=(),
    )
    return replace(found, reasons=_reasons(one, other, found))


def _order(phase: Pair) -> int:
    """As they follow each other in a step."""
    return _PHASES.index(phase.name) if phase.name in _PHASES else len(_PHASES)


def _reasons(a: Side, b: Side, found: Comparison) -> tuple[Reason, ...]:
    if not found.is_residual:
        return reasons(a, b, found)
    predicted, measured = (a, b) if a.run.origin == PREDICTED else (b, a)
    return residual_reasons(predicted, measured, found)


def _at_peak(side: Side) -> dict[str, int]:
    return {each.name: each.size_bytes for each in side.peak.categories} if side.peak else {}


def _categories(a: Mapping[str, int], b: Mapping[str, int]) -> tuple[Pair, ...]:
    """Those that either holds anything of; nothing where there is no history."""
    held = [each for each in CATEGORIES if a.get(each) or b.get(each)]
    return tuple(Pair(each, a.get(each, 0) if a else None, b.get(each, 0) if b else None) for each in held)


def _pairs(a: Mapping[str, int | None], b: Mapping[str, int | None]) -> tuple[Pair, ...]:
    names = dict.fromkeys((*a, *b))
    return tuple(Pair(name, a.get(name), b.get(name)) for name in names)
