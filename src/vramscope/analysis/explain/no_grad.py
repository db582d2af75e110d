"""A forward that keeps nothing for backward, from the record of one that did.

Each part of the model (a repeated block, or what an outermost module consists of) then has its
results only while it runs, and its output until the next part has run."""

from __future__ import annotations

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.parts import Calls, calls_of, children_of_roots, repeated_blocks
from vramscope.analysis.explain.savings import Change
from vramscope.run.trace import BACKWARD, GRAD, RECOMPUTE, Column


def recorded_for_backward(facts: Facts) -> Column:
    """A mask: what modules made in a forward while gradients were recorded."""
    made = facts.has_flag(GRAD) & ~facts.has_flag(BACKWARD) & ~facts.has_flag(RECOMPUTE)
    found: Column = made & facts.born_in_phase("forward") & (facts.blocks.module > 0)
    return found


def keep_nothing(facts: Facts, kept: Column) -> Change:
    """The change of giving up some forwards' results (a mask) as soon as nobody needs them any more."""
    modules = facts.trace.tables.modules
    calls = calls_of(facts, (*repeated_blocks(modules), *children_of_roots(modules)))
    mine = kept & (calls.of_block >= 0)
    output = np.isin(np.arange(len(mine)), calls.output)
    inside, given_on = np.flatnonzero(mine & ~output), np.flatnonzero(mine & output)
    change = Change(facts).remove(inside, calls.end[calls.of_block[inside]])
    until = _next_end(calls, np.unique(calls.of_block[mine]), facts.trace.moments)
    return change.remove(given_on, until[calls.of_block[given_on]])


def _next_end(calls: Calls, keeping_nothing: Column, moments: int) -> Column:
    """int64, for each call when the next one is over; if that keeps what it is given, the end of the history."""
    following = np.append(calls.end[1:], moments)
    keeps = ~np.isin(np.arange(1, len(calls.end) + 1), keeping_nothing)
    return np.where(keeps, moments, following)
