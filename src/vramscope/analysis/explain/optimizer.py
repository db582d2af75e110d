"""What the optimizer's step and its states could do without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import ESTIMATE, RECORDED, Remedy
from vramscope.analysis.explain.places import count
from vramscope.analysis.explain.savings import Change, highest_together
from vramscope.run.categories import OPTIMIZER_STATE, TEMPORARY
from vramscope.run.rules import MIN_BLOCK
from vramscope.run.trace import Column, Optimizer
from vramscope.units import format_bytes

ADAMS = ("Adam", "AdamW")
FUSED = (*ADAMS, "SGD", "Adagrad")
"""Those of torch.optim that take `fused`."""
_QUANTIZED_LEAST = 4096
"""bitsandbytes keeps states of fewer elements in 32 bits (`min_8bit_size` of its optimizers)."""
_QUANTIZED_GROUP = 256
"""Elements that share one 32-bit scale in bitsandbytes' 8-bit optimizers."""


def optimizer_remedies(facts: Facts) -> Iterator[Remedy]:
    """Other ways of stepping, and smaller states; of several optimizers, of all of them."""
    optimizers = facts.trace.tables.optimizers
    kinds = " and ".join(dict.fromkeys(each.kind for each in optimizers))
    if optimizers and all(each.foreach is not False and not each.fused for each in optimizers):
        yield from _unless_nothing(_for_loop(facts, kinds))
        if all(each.kind in FUSED for each in optimizers):
            yield from _unless_nothing(_fused(facts, kinds))
    if optimizers and all(each.kind in ADAMS for each in optimizers):
        yield from _eight_bit(facts, kinds)


def _unless_nothing(remedy: Remedy) -> Iterator[Remedy]:
    if remedy.saved_bytes and remedy.saved_bytes > 0:
        yield remedy


def step_temporaries(facts: Facts) -> Column:
    """A mask: what optimizers' steps made and gave back."""
    found: Column = facts.of(TEMPORARY) & facts.born_in_phase("optimizer_step")
    return found


def _for_loop(facts: Facts, kinds: str) -> Remedy:
    """One parameter after the other instead of all at once."""
    rows, instead, blocks = np.flatnonzero(step_temporaries(facts)), _one_by_one(facts), facts.blocks
    change, most = Change(facts).remove(rows), highest_together(facts, rows)
    spans, first, span = np.unique(facts.born_in[rows], return_index=True, return_inverse=True)
    end = np.zeros(len(spans), np.int64)
    np.maximum.at(end, span, blocks.freed[rows])
    change.add(blocks.born[rows][first], end, np.full(len(spans), instead))
    instead_of = f"its step makes {format_bytes(most)} of temporaries at once"
    note = f"{instead_of}, one parameter at a time {format_bytes(instead)}"
    exact = all(each.kind in ADAMS for each in facts.trace.tables.optimizers)
    return Remedy(
        f"foreach=False in {kinds}", change.saving().saved_bytes, RECORDED if exact else ESTIMATE, note
    )


def _one_by_one(facts: Facts) -> int:
    """What a loop over the parameters has at once, by torch/optim/adam.py, `_single_tensor_adam`.

    For a parameter it makes a root and a quotient, and until the quotient is there the last
    parameter's is still referred to; a weight decay that isn't decoupled makes another gradient."""
    sizes = _second_moments(facts)
    if not len(sizes):
        states = facts.blocks.size_bytes[facts.of(OPTIMIZER_STATE)]
        return 3 * int(states.max(initial=0))
    decayed = any(_adds_decay(each) for each in facts.trace.tables.optimizers)
    last = np.concatenate([[0], sizes[:-1]])
    return int(((3 if decayed else 2) * sizes + last).max())


def _adds_decay(optimizer: Optimizer) -> bool:
    settings = optimizer.settings
    return bool(settings.get("weight_decay")) and not settings.get(
        "decoupled_weight_decay", optimizer.kind == "AdamW"
    )


def _second_moments(facts: Facts) -> Column:
    """int64, the sizes of Adam's second moments in the order of the parameters."""
    named = np.array([name.endswith(" exp_avg_sq") for name in facts.trace.tables.names])
    found: Column = facts.blocks.size_bytes[facts.of(OPTIMIZER_STATE) & named[facts.blocks.name]]
    return found


def _fused(facts: Facts, kinds: str) -> Remedy:
    """One kernel that needs no temporaries; its count of steps lies on the card, one block a parameter."""
    states = np.flatnonzero(facts.of(OPTIMIZER_STATE))
    change = Change(facts).remove(step_temporaries(facts))
    parameters = len(_second_moments(facts)) or len(states)
    if len(states):
        first = int(facts.blocks.born[states].min())
        change.add(first, facts.trace.moments, parameters * MIN_BLOCK)
    note = f"its step then makes no temporaries; {count(parameters, 'parameter')} keep 512 B more each"
    return Remedy(f"fused=True in {kinds}", change.saving().saved_bytes, RECORDED, note)


def _eight_bit(facts: Facts, kinds: str) -> Iterator[Remedy]:
    """bitsandbytes' 8-bit states: a byte an element and a scale for each group; its kernel makes no temporaries."""
    states = np.flatnonzero(facts.of(OPTIMIZER_STATE))
    elements = _elements(facts, states)
    if elements is None:
        return
    chosen = states[elements >= _QUANTIZED_LEAST]
    elements = elements[elements >= _QUANTIZED_LEAST]
    scales = 4 * -(-elements // _QUANTIZED_GROUP)
    smaller = _rounded(elements) + _rounded(scales)
    blocks = facts.blocks
    change = Change(facts).remove(step_temporaries(facts)).remove(chosen)
    saved = change.add(blocks.born[chosen], blocks.freed[chosen], smaller).saving().saved_bytes
    before, after = int(blocks.size_bytes[chosen].sum()), int(smaller.sum())
    note = f"states of {format_bytes(after)} instead of {format_bytes(before)}"
    yield from _unless_nothing(Remedy(f"{kinds} in 8 bits (bitsandbytes)", saved, ESTIMATE, note))


def _elements(facts: Facts, states: Column) -> Column | None:
    """int64, the elements of each state; None where their type is not 4 or 2 bytes wide."""
    parameters = sum(each.parameters for each in facts.trace.tables.optimizers)
    requested = facts.blocks.requested_bytes[states]
    width = round(int(requested.sum()) / (2 * parameters)) if parameters else 0
    return requested // width if width in (2, 4) else None


def _rounded(sizes: Column) -> Column:
    found: Column = -(-sizes // MIN_BLOCK) * MIN_BLOCK
    return found
