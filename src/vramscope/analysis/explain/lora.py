"""A LoRA whose base still trains: then it saves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import RECORDED, WRONG, Finding, Remedy
from vramscope.analysis.explain.frozen import take_training, training_parts
from vramscope.analysis.explain.places import modules_by_weight
from vramscope.analysis.explain.savings import Change, highest_together
from vramscope.run.categories import GRADIENT, OPTIMIZER_STATE, PARAMETER
from vramscope.run.trace import Column
from vramscope.units import format_bytes

_LORA = "lora_"
_BESIDE = "modules_to_save"
"""In the paths of what peft trains in full beside LoRA's own."""


def lora_base_trains(facts: Facts) -> Iterator[Finding]:
    """In steps in which LoRA's layers have gradients, half of what they were put beside has them too."""
    lora = _named(facts, _LORA)
    base = ~lora & ~_named(facts, _BESIDE) & (facts.blocks.module > 0)
    with_lora = np.isin(facts.born_step, np.unique(facts.born_step[facts.of(GRADIENT) & lora]))
    weights = highest_together(facts, np.flatnonzero(facts.of(PARAMETER) & base))
    trained = np.flatnonzero(facts.of(GRADIENT) & base & with_lora)
    gradients = highest_together(facts, trained)
    if not gradients or 2 * gradients < weights:
        return
    rows = np.flatnonzero(facts.of(GRADIENT, OPTIMIZER_STATE) & base & with_lora)
    yield Finding(
        "lora_base_trains",
        "Why does the base of the LoRA train?",
        f"Beside LoRA's own, parameters of {format_bytes(weights)} are there, and gradients of "
        f"{format_bytes(gradients)} for them: the base is not frozen.",
        highest_together(facts, rows),
        WRONG,
        evidence=tuple(training_parts(facts, rows)),
        remedies=(
            Remedy(
                "the base's parameters with requires_grad_(False), as peft's get_peft_model leaves them",
                take_training(facts, Change(facts), rows).saving().saved_bytes,
                RECORDED,
                at_least=True,
            ),
        ),
        where=modules_by_weight(facts, trained),
    )


def _named(facts: Facts, word: str) -> Column:
    """A mask: the blocks whose tensor or module has a word in its name."""
    tables = facts.trace.tables
    found: Column = (
        _with(word, tables.names)[facts.blocks.name]
        | _with(word, (each.path for each in tables.modules))[facts.blocks.module]
    )
    return found


def _with(word: str, names: Iterable[str]) -> Column:
    return np.array([word in each for each in names])
