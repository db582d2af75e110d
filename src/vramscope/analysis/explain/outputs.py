"""Results of a step that a variable still refers to while the next step runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import RECORDED, Remedy
from vramscope.analysis.explain.places import lines_by_weight
from vramscope.analysis.explain.savings import Change
from vramscope.run.categories import ACTIVATION, TEMPORARY, UNKNOWN
from vramscope.run.trace import Column
from vramscope.units import format_bytes


def output_remedies(facts: Facts) -> Iterator[Remedy]:
    """Giving up at the end of backward what is only replaced by the next step's results."""
    rows = _kept_over(facts)
    if not len(rows):
        return
    steps = facts.born_step[rows]
    saved = Change(facts).remove(rows, first=facts.boundaries.backward_end[steps]).saving().saved_bytes
    last = rows[steps == steps.max()]
    lines = lines_by_weight(facts, last, 2)
    made = f", made at {' and '.join(lines)}" if lines else ""
    size = format_bytes(int(facts.blocks.size_bytes[last].sum()))
    note = f"{size} of a step's results live until the next step has its own{made}"
    yield Remedy("del the step's results (loss, logits …) after backward", saved, RECORDED, note)


def _kept_over(facts: Facts) -> Column:
    """Rows of what a step's forward made and the next one's still has; not what is never given up."""
    made = facts.of(ACTIVATION, TEMPORARY, UNKNOWN) & facts.born_in_phase("forward")
    rows = np.flatnonzero(made & facts.boundaries.complete[facts.born_step])
    freed, following = facts.blocks.freed[rows], facts.boundaries.forward[facts.born_step[rows] + 1]
    found: Column = rows[(freed > following) & (freed < facts.trace.moments)]
    return found
