"""Activations that are kept for a backward which never comes: a forward without torch.no_grad."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import ESTIMATE, WASTE, Finding, Remedy
from vramscope.analysis.explain.no_grad import keep_nothing, recorded_for_backward
from vramscope.analysis.explain.places import moment_place
from vramscope.analysis.explain.savings import highest_together
from vramscope.run.trace import EVALUATION, Column
from vramscope.units import format_bytes

LEAST_SHARE = 0.05
"""Of the peak; with less, nothing worth telling is kept."""


def forward_without_backward(facts: Facts) -> Iterator[Finding]:
    """Forwards that recorded gradients and were followed by no backward."""
    made = recorded_for_backward(facts)
    kept = made & (_no_backward_follows(facts) | _evaluated(facts, made))
    size = highest_together(facts, np.flatnonzero(kept))
    if size < LEAST_SHARE * facts.peak_bytes:
        return
    top = facts.highest_in([facts.windows[number] for number in np.unique(facts.born_in[kept])])
    assert top is not None
    yield Finding(
        "forward_without_backward",
        f"Why are {format_bytes(size)} of activations kept that no backward uses?",
        f"{_what(made, kept)} ran with gradients recorded, so what a backward would need was kept; none came. "
        f"Memory is highest there {moment_place(facts, top)}. model.eval() does not change that.",
        size,
        WASTE,
        remedies=(
            Remedy(
                "torch.no_grad() or torch.inference_mode() around it",
                keep_nothing(facts, kept).saving().saved_bytes,
                ESTIMATE,
            ),
        ),
    )


def _no_backward_follows(facts: Facts) -> Column:
    """A mask: the blocks born in forwards without a backward before the next forward or step."""
    found = np.zeros(len(facts.windows) + 1, bool)
    waiting = None
    for number, window in enumerate(facts.windows):
        if window.span.phase == "backward":
            waiting = None
        elif window.span.phase in ("forward", "optimizer_step"):
            found[waiting if waiting is not None else -1] = True
            waiting = number if window.span.phase == "forward" else None
    if waiting is not None and not _cut_off(facts):
        found[waiting] = True
    found[-1] = False
    by_block: Column = found[facts.born_in]
    return by_block


def _cut_off(facts: Facts) -> bool:
    """Whether a backward might have come if the program had run on."""
    report = facts.run.report
    return report is not None and report.stopped.how not in ("finished", "exit")


def _evaluated(facts: Facts, made: Column) -> Column:
    """A mask: what modules made in eval mode that are in training mode at other times."""
    evaluation = facts.has_flag(EVALUATION)
    trained = np.zeros(len(facts.trace.tables.modules), bool)
    trained[facts.blocks.module[made & ~evaluation]] = True
    found: Column = made & evaluation & trained[facts.blocks.module]
    return found


def _what(made: Column, kept: Column) -> str:
    return "The forward" if np.array_equal(made, kept) else "A forward"
