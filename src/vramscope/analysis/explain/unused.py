"""Parameters that an optimizer holds and that never get a gradient."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import PUZZLE, WRONG, Evidence, Finding
from vramscope.analysis.explain.places import listed
from vramscope.analysis.lookup import sums
from vramscope.run.categories import COMMUNICATION, GRADIENT, PARAMETER
from vramscope.run.trace import Column

LEAST_SHARE = 0.01
"""Of what the optimizer holds; a constant or two among its parameters is nothing to tell."""


def optimizer_holds_frozen(facts: Facts) -> Iterator[Finding]:
    """More elements in the optimizers than modules have that can train."""
    held = sum(each.parameters for each in facts.trace.tables.optimizers)
    modules = facts.trace.tables.modules
    trainable, every = sum(each.trainable for each in modules), sum(each.parameters for each in modules)
    if not facts.steps or not trainable or not trainable + LEAST_SHARE * held < held <= every:
        return
    yield Finding(
        "optimizer_holds_frozen",
        f"What do the {held - trainable:,} parameters cost that the optimizer holds and that cannot train?",
        f"Nothing beside themselves. It was given {held:,} parameters, {trainable:,} of which require gradients, and "
        "makes states only for those that have one. If the others were meant to train, they do not.",
        0,
        PUZZLE,
    )


def trainable_without_gradient(facts: Facts) -> Iterator[Finding]:
    """Modules with trainable parameters of which none ever had a gradient, though others had."""
    if not facts.steps or facts.of(COMMUNICATION).any():  # in buckets, gradients have no blocks of their own
        return
    modules = facts.trace.tables.modules
    gradients, weights = _by_module(facts, GRADIENT), _by_module(facts, PARAMETER)
    shared = _shared(facts, gradients, weights)
    without = [
        number
        for number, each in enumerate(modules)
        if each.trainable and weights[number] and not gradients[number] and each.trainable not in shared
    ]
    if not without or not gradients[1:].any():
        return
    names = tuple(modules[number].path for number in without)
    size = int(weights[without].sum())
    elements = sum(modules[number].trainable for number in without)
    yield Finding(
        "trainable_without_gradient",
        f"Why do {elements:,} trainable parameters never get a gradient?",
        f"No backward reached {listed(names)}: what they make is no part of the loss, or is detached on the way. They "
        "take up memory and do not learn.",
        size,
        WRONG,
        evidence=(Evidence("parameters", size, "of these modules"),),
        where=names[:3],
    )


def _by_module(facts: Facts, category: str) -> Column:
    """int64, for each module the bytes of the category's blocks, whenever they lived."""
    sizes = facts.blocks.size_bytes * facts.of(category)
    return sums(facts.blocks.module, sizes, len(facts.trace.tables.modules))


def _shared(facts: Facts, gradients: Column, weights: Column) -> set[int]:
    """Elements of the modules that have gradients of a weight which another one is recorded to hold."""
    modules = facts.trace.tables.modules
    return {modules[number].trainable for number in np.flatnonzero((gradients > 0) & (weights == 0)).tolist()}
