"""An autocast cache that is never emptied: autocast was entered once, around the whole loop."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import RECORDED, WRONG, Finding, Remedy
from vramscope.analysis.explain.places import count
from vramscope.analysis.explain.savings import Change
from vramscope.run.categories import AUTOCAST_CACHE
from vramscope.run.trace import Column
from vramscope.units import format_bytes


def cache_never_freed(facts: Facts) -> Iterator[Finding]:
    """Casts of weights that outlive the optimizer step of the step that made them."""
    blocks, at = facts.blocks, facts.boundaries
    rows = np.flatnonzero(facts.of(AUTOCAST_CACHE) & at.complete[facts.born_step])
    over = at.over[facts.born_step[rows]]
    rows = rows[(blocks.born[rows] < over) & (blocks.freed[rows] > over)]
    if not len(rows):
        return
    steps = facts.born_step[rows]
    first = rows[steps == steps.min()]
    size = int(blocks.size_bytes[first].sum())
    yield Finding(
        "autocast_cache",
        f"Why are {format_bytes(size)} of autocast's casts never given back?",
        f"{count(len(first), 'cast')} of weights outlive the optimizer step. Autocast drops its cache when its "
        "outermost block ends, so it is entered around the whole loop. Besides the memory: a cast that was made "
        "before a step is of the old weight, and the next forward uses it.",
        size,
        WRONG,
        remedies=(
            Remedy(
                "torch.autocast around the forward and the loss of each step",
                _saved(facts, rows),
                RECORDED,
            ),
        ),
    )


def _saved(facts: Facts, rows: Column) -> int:
    """From the end of each backward, which may need them, to the next forward, which would make its own."""
    change, at = Change(facts), facts.boundaries
    for step in facts.steps:
        change.remove(rows, int(at.backward_end[step]), int(at.forward[step + 1]))
    return change.saving().saved_bytes
