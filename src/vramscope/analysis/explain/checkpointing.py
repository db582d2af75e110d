"""Gradient checkpointing: what it would save, and where it was asked for and covers nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import ESTIMATE, WRONG, Evidence, Finding, Remedy
from vramscope.analysis.explain.parts import Calls, calls_of, part_numbers, repeated_blocks
from vramscope.analysis.explain.places import count, listed
from vramscope.analysis.explain.savings import Change
from vramscope.run.categories import ACTIVATION
from vramscope.run.trace import BACKWARD, RECOMPUTE, Column
from vramscope.units import format_bytes

NOTE = "gradient_checkpointing"
"""What the recorder notes of a module that was asked to checkpoint."""


def checkpointing_remedies(facts: Facts) -> Iterator[Remedy]:
    """Every repeated block's activations only while it runs, forward and backward; its output all the time."""
    if not _asked(facts):
        yield from _checkpointed(facts, "gradient checkpointing of")


def _checkpointed(facts: Facts, change: str) -> Iterator[Remedy]:
    blocks = repeated_blocks(facts.trace.tables.modules)
    if not blocks or facts.has_flag(RECOMPUTE).any():
        return
    calls = calls_of(facts, blocks)
    rows = np.setdiff1d(np.flatnonzero(facts.of(ACTIVATION) & (calls.of_block >= 0)), calls.output)
    again = _recomputed(facts, calls, rows, blocks)
    saved = Change(facts).remove(rows, calls.end[calls.of_block[rows]], again).saving().saved_bytes
    if saved > 0:
        used = _used(facts, rows, blocks)
        note = f"keeps the inputs of {count(len(used), 'block')}, and runs each forward again in backward"
        yield Remedy(f"{change} {_named(used)}", saved, ESTIMATE, note)


def checkpointing_covers_nothing(facts: Facts) -> Iterator[Finding]:
    """Modules that were asked to checkpoint, in a run that recomputed nothing."""
    modules = facts.trace.tables.modules
    asked = _asked(facts)
    if not asked or facts.has_flag(RECOMPUTE).any() or not facts.has_flag(BACKWARD).any():
        return
    below = part_numbers(modules, asked)[facts.blocks.module] >= 0
    rows = np.flatnonzero(facts.of(ACTIVATION) & below)
    live = np.intersect1d(rows, facts.live(facts.peak))
    size = int(facts.blocks.size_bytes[live].sum())
    yield Finding(
        "checkpointing_covers_nothing",
        "Why does gradient checkpointing save nothing?",
        f"It is switched on in {count(len(asked), 'module')}, but no forward ran again in backward, and "
        f"{format_bytes(size)} of their activations are kept at the peak. A model that is in eval mode, or whose "
        "inputs do not require gradients, skips it without a word.",
        size,
        WRONG,
        evidence=(Evidence("activations", size, "of those modules, at the peak"),),
        remedies=tuple(_checkpointed(facts, "model.train(), so that checkpointing covers")),
        where=asked[:3],
    )


def _asked(facts: Facts) -> tuple[str, ...]:
    return tuple(each.path for each in facts.trace.tables.modules if NOTE in each.notes)


def _recomputed(facts: Facts, calls: Calls, rows: Column, blocks: tuple[str, ...]) -> Column:
    """int64, for each row the moment at which backward reaches its block; its end where it never does."""
    part = part_numbers(facts.trace.tables.modules, blocks)[facts.blocks.module]
    back = np.flatnonzero(facts.has_flag(BACKWARD) & (part >= 0) & (facts.born_in >= 0))
    keys, first = np.unique(facts.born_in[back] * len(blocks) + part[back], return_index=True)
    wanted = _next_backward(facts)[facts.born_in[rows]] * len(blocks) + part[rows]
    place = np.searchsorted(keys, wanted)
    found = np.append(keys, -1)[np.minimum(place, len(keys))] == wanted
    moment = np.append(facts.blocks.born[back][first], 0)[np.minimum(place, len(keys))]
    return np.where(found, moment, calls.end[calls.of_block[rows]])


def _next_backward(facts: Facts) -> Column:
    """int64, for each span the number of the backward that follows it; -1: none does."""
    found, following = [], -1
    for number in range(len(facts.windows) - 1, -1, -1):
        if facts.windows[number].span.phase == "backward":
            following = number
        found.append(following)
    return np.array(found[::-1], np.int64)


def _used(facts: Facts, rows: Column, blocks: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the repeated blocks that some blocks of memory are of."""
    numbers = part_numbers(facts.trace.tables.modules, blocks)[facts.blocks.module[rows]]
    return tuple(blocks[number] for number in np.unique(numbers))


def _named(blocks: tuple[str, ...]) -> str:
    """``GPT2.h.0 to 11``, ``ResNet.layer1.0 to layer4.2``; of several models their names."""
    roots = tuple(dict.fromkeys(each.partition(".")[0] for each in blocks))
    if len(roots) > 1:
        return f"the blocks of {listed(roots)}"
    first, last = blocks[0].split("."), blocks[-1].split(".")
    shared = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(last))
    return f"{blocks[0]} to {'.'.join(last[shared:])}" if shared < len(last) else blocks[0]
