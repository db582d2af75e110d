"""Layers that repeat, told once: the twelve blocks of a GPT-2 as one ``h.0 to h.11 × 12``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from vramscope.analysis.layers import Layer

ALIKE = 0.02
"""Siblings whose kept activations differ by more than this share are not told together: one of them may be
checkpointed, and the other not."""


def folded(layer: Layer) -> Layer:
    """The layer with its repeated children as one each, whose figures are the sums of theirs."""
    return replace(layer, children=fold(layer.children))


def fold(siblings: Sequence[Layer]) -> tuple[Layer, ...]:
    """Neighbours of the same build become one layer, at every depth."""
    runs: list[list[Layer]] = []
    for each in siblings:
        if runs and _continues(runs[-1], each):
            runs[-1].append(each)
        else:
            runs.append([each])
    return tuple(folded(run[0]) if len(run) == 1 else _together(run) for run in runs)


def _continues(run: Sequence[Layer], layer: Layer) -> bool:
    """The next number in a list of modules, built like the ones before it."""
    last = run[-1]
    if not (last.name.isdigit() and layer.name.isdigit() and int(layer.name) == int(last.name) + 1):
        return False
    kept = run[0].total.activation_bytes, layer.total.activation_bytes
    return abs(kept[0] - kept[1]) <= ALIKE * max(kept) and _build(layer) == _build(last)


def _build(layer: Layer) -> tuple[object, ...]:
    """What two layers of the same build share."""
    own = layer.own
    below = tuple((each.name, *_build(each)) for each in layer.children)
    return (layer.kind, own.parameters, own.trainable, layer.notes, below)


def _together(run: Sequence[Layer]) -> Layer:
    """One layer for several of the same build; their children are told together too."""
    first, last = run[0], run[-1]
    children = [_together(each) for each in zip(*(layer.children for layer in run), strict=True)]
    return replace(
        first,
        own=reduce(add, (layer.own for layer in run)),
        total=reduce(add, (layer.total for layer in run)),
        children=fold(children),
        copies=sum(layer.copies for layer in run),
        last=last.last or last.path,
    )
