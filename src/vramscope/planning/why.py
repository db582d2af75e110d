"""Why a row takes more or less than the baseline: what its run and the baseline's say when held side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from vramscope.analysis.compare import compare
from vramscope.jobs.technique import Maths
from vramscope.jobs.work import Work
from vramscope.planning.result import FAILED, Outcome, Result
from vramscope.run.run import Run
from vramscope.run.store import run_from_bytes

_MOST = 3
"""So many sentences."""
_NOTABLE = 0.005
"""A category that changes by less than this share of the peak is not told."""
_LETTER = re.compile(r"\b(A|B)\b(?=[ ',;)]|$)")
_NAMES = {"A": "the baseline", "B": "this"}


def changes(baseline: Result, result: Result) -> dict[str, int]:
    """By category, the bytes that the peak of allocated holds more than the baseline's; only what matters."""
    if not baseline.categories or not result.categories:
        return {}
    least = _NOTABLE * max(baseline.peak_allocated_bytes or 0, result.peak_allocated_bytes or 0)
    names = dict.fromkeys((*baseline.categories, *result.categories))
    moved = {name: result.categories.get(name, 0) - baseline.categories.get(name, 0) for name in names}
    kept = {name: change for name, change in moved.items() if abs(change) > least}
    return dict(sorted(kept.items(), key=lambda item: -abs(item[1])))


def reasons(baseline: Outcome, outcome: Outcome) -> tuple[str, ...]:
    """What explains the changes, the weightiest first; nothing where either was not followed to its end."""
    one, other = whole_run(baseline), whole_run(outcome)
    if one is None or other is None or FAILED in (baseline.result.verdict, outcome.result.verdict):
        return ()
    found = compare(one, other)
    told = [_named(reason.sentence) for reason in found.reasons]
    return tuple(told[:_MOST]) or ("nothing that matters changed",)


def whole_run(outcome: Outcome) -> Run | None:
    """The run that came to its end: the one without a limit where it does not fit."""
    data = outcome.unlimited or outcome.run
    return run_from_bytes(data) if data else None


def _named(sentence: str) -> str:
    """A comparison speaks of A and B."""
    return _LETTER.sub(lambda found: _NAMES[found[1]], sentence)


def prices(work: Work, baseline: Mapping[str, str]) -> Iterator[str]:
    """What the techniques cost that the baseline does not have."""
    for knob, technique, _ in work.recipe.techniques():
        position = work.recipe[knob.name]
        if baseline.get(knob.name) != position and (technique.price or technique.maths is Maths.OTHER):
            yield f"{knob.name} {position}: {technique.price or technique.summary}"
