"""What was meant to be frozen and still trains: ``module.requires_grad = False``, which freezes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import ESTIMATE, WRONG, Evidence, Finding, Remedy
from vramscope.analysis.explain.no_grad import keep_nothing, recorded_for_backward
from vramscope.analysis.explain.optimizer import step_temporaries
from vramscope.analysis.explain.parts import part_numbers
from vramscope.analysis.explain.places import listed
from vramscope.analysis.explain.savings import Change, highest_together
from vramscope.run.categories import GRADIENT, OPTIMIZER_STATE, plural
from vramscope.run.trace import BACKWARD, Column

NOTE = "requires_grad attribute"
"""What the recorder notes of a module that someone set ``requires_grad`` on."""


def freeze_freezes_nothing(facts: Facts) -> Iterator[Finding]:
    """It sets an attribute of the module, of which its parameters know nothing."""
    modules = facts.trace.tables.modules
    noted = tuple(each.path for each in modules if NOTE in each.notes)
    below = part_numbers(modules, noted) >= 0
    trainable = sum(each.trainable for each, inside in zip(modules, below, strict=True) if inside)
    if not trainable or not facts.steps:
        return
    rows = np.flatnonzero(facts.of(GRADIENT, OPTIMIZER_STATE) & below[facts.blocks.module])
    yield Finding(
        "freeze_freezes_nothing",
        f"Why do {trainable:,} parameters still train after requires_grad = False?",
        f"It was set on modules ({listed(noted)}), where it is an attribute like any other: their parameters keep "
        "their own. They get gradients and optimizer states all the same.",
        highest_together(facts, rows),
        WRONG,
        evidence=tuple(training_parts(facts, rows)),
        remedies=(
            Remedy(
                "module.requires_grad_(False), which sets it on the parameters",
                _frozen(facts, rows, below).saving().saved_bytes,
                ESTIMATE,
            ),
        ),
        where=noted[:3],
    )


def training_parts(facts: Facts, rows: Column) -> Iterator[Evidence]:
    """Gradients and states among some blocks."""
    for category in (GRADIENT, OPTIMIZER_STATE):
        if size := highest_together(facts, rows[facts.of(category)[rows]]):
            yield Evidence(plural(category), size, "of these parameters")


def take_training(facts: Facts, change: Change, rows: Column) -> Change:
    """Takes gradients and states away, and of the steps' temporaries what their share of gradients comes to."""
    blocks = facts.blocks
    every = int(blocks.size_bytes[facts.of(GRADIENT)].sum())
    gone = int(blocks.size_bytes[rows[facts.of(GRADIENT)[rows]]].sum())
    mine = np.flatnonzero(step_temporaries(facts))
    less = (blocks.size_bytes[mine] * (gone / max(every, 1))).astype(np.int64)
    return change.remove(rows).add(blocks.born[mine], blocks.freed[mine], -less)


def _frozen(facts: Facts, rows: Column, frozen: Column) -> Change:
    """Neither gradients nor states; nor anything that is kept, or made in backward, for what lies in front."""
    kept = _kept_for_nothing(facts, frozen)
    change = take_training(facts, keep_nothing(facts, kept), rows)
    in_front = np.isin(facts.blocks.module, np.unique(facts.blocks.module[kept]))
    return change.remove(facts.has_flag(BACKWARD) & ~facts.of(GRADIENT) & in_front)


def _kept_for_nothing(facts: Facts, frozen: Column) -> Column:
    """A mask: what forwards make before the first module that trains on purpose.

    Nothing there would require gradients, so nothing would be kept, and backward would end above it."""
    trains = np.array([each.trainable > 0 for each in facts.trace.tables.modules]) & ~frozen
    made = recorded_for_backward(facts)
    rows = np.flatnonzero(made & trains[facts.blocks.module])
    first = np.full(len(facts.windows) + 1, facts.trace.moments, np.int64)
    np.minimum.at(first, facts.born_in[rows], facts.blocks.born[rows])
    found: Column = made & (facts.blocks.born < first[facts.born_in])
    return found
