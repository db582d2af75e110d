"""Logits over a large vocabulary: the output of a language model's head, and the copies that its loss makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import RECORDED, WASTE, Evidence, Finding, Remedy
from vramscope.analysis.explain.places import block_words, count
from vramscope.analysis.explain.savings import Change
from vramscope.run.categories import ACTIVATION, TEMPORARY, UNKNOWN
from vramscope.run.trace import AUTOCAST, Column, Module
from vramscope.units import format_bytes

LEAST_SHARE = 0.1
"""Of the peak; with less it is not the logits that make it."""
LEAST_SAVED = 0.05
"""Of the peak; with less it does not help to make them in chunks, or that is done already."""
CHUNKS = 8
"""Into how many parts the loss is thought to be cut."""
_LISTED = 6
"""So many copies are named."""
_SHIFTED = 1 / 16
"""A copy without the last token of each sequence is so much smaller at most."""


@dataclass(frozen=True, slots=True)
class _Head:
    module: Module
    requested_bytes: int
    """Of its output."""
    width: int
    """Bytes an element of it."""


def large_logits(facts: Facts) -> Iterator[Finding]:
    """Where the logits and their copies make a good part of the peak."""
    head = _head(facts)
    if head is None:
        return
    copies = _copies(facts, head)
    live = np.intersect1d(np.flatnonzero(copies), facts.live(facts.peak))
    size = int(facts.blocks.size_bytes[live].sum())
    remedy = _chunked(facts, copies)
    if size < LEAST_SHARE * facts.peak_bytes or (remedy.saved_bytes or 0) < LEAST_SAVED * facts.peak_bytes:
        return
    yield Finding(
        "logits",
        f"Why do the logits take {format_bytes(size)}?",
        f"{head.module.path} gives a number for each token and each word of the vocabulary: "
        f"{format_bytes(head.requested_bytes)}. With what the loss makes of them (casts, log-softmax, gradients) "
        f"{count(len(live), 'block')} of that shape {'is' if len(live) == 1 else 'are'} there at the peak"
        f"{_in_full(facts, head, live)}.",
        size,
        WASTE,
        evidence=tuple(_parts(facts, live)),
        remedies=(remedy,),
        where=(head.module.path,),
    )


def _head(facts: Facts) -> _Head | None:
    """The linear layer whose weight is as large as an embedding's, or is the embedding's own."""
    modules = facts.trace.tables.modules
    embeddings = {each.parameters: each for each in modules if each.kind == "Embedding" and each.parameters}
    parents = {each.path.rpartition(".")[0] for each in modules}
    linear = (
        (n, each) for n, each in enumerate(modules) if "Linear" in each.kind and each.path not in parents
    )
    found = [
        _Head(modules[number], size, 2 if autocast else _width(embedding))
        for number, module in linear
        if (embedding := _embedding_of(module, embeddings)) is not None
        for size, autocast in _largest_output(facts, number)
    ]
    return max(found, key=lambda head: head.requested_bytes, default=None)


def _embedding_of(module: Module, embeddings: dict[int, Module]) -> Module | None:
    """Whose weight a layer's is as large as; one without parameters of its own shares another module's."""
    alike = (each for size, each in embeddings.items() if size <= module.parameters <= 1.01 * size)
    return next(alike, None) or (next(iter(embeddings.values()), None) if not module.parameters else None)


def _width(embedding: Module) -> int:
    """Bytes an element of its weight."""
    return max(embedding.parameter_bytes // embedding.parameters, 1)


def _largest_output(facts: Facts, number: int) -> Iterator[tuple[int, bool]]:
    """The requested bytes of the largest block that a module made in forward, and whether autocast was on."""
    rows = np.flatnonzero((facts.blocks.module == number) & facts.born_in_phase("forward"))
    if len(rows):
        row = int(rows[np.argmax(facts.blocks.requested_bytes[rows])])
        yield int(facts.blocks.requested_bytes[row]), bool(facts.blocks.flags[row] & AUTOCAST)


def _copies(facts: Facts, head: _Head) -> Column:
    """A mask: blocks of as many elements as the logits, in 2 or 4 bytes, made in forward or backward."""
    asked = facts.blocks.requested_bytes
    found = np.zeros(len(asked), bool)
    for width in {head.width, 2, 4}:
        size = head.requested_bytes * width / head.width
        found |= (asked <= size) & (asked >= (1 - _SHIFTED) * size)
    made = facts.born_in_phase("forward", "backward") & facts.of(ACTIVATION, TEMPORARY, UNKNOWN)
    return found & made & _at_the_end(facts, head)[facts.blocks.module]


def _at_the_end(facts: Facts, head: _Head) -> Column:
    """bool, for each module whether the logits pass through it: the head, what it is in, and losses."""
    found = [
        "." not in each.path or f"{head.module.path}.".startswith(f"{each.path}.")
        for each in facts.trace.tables.modules
    ]
    return np.array(found)


def _in_full(facts: Facts, head: _Head, live: Column) -> str:
    """Whether they are in 32 bits."""
    full = facts.blocks.requested_bytes[live] > 0.9 * head.requested_bytes * 4 / head.width
    return ", in fp32" if full.all() else f", {int(full.sum())} of them in fp32" if full.any() else ""


def _parts(facts: Facts, live: Column) -> Iterator[Evidence]:
    newest = int(facts.born_step[live].max())
    for row in live[np.argsort(-facts.blocks.size_bytes[live], kind="stable")][:_LISTED].tolist():
        step = int(facts.born_step[row])
        left = f", left by step {facts.step_number(step)}" if 0 < step < newest else ""
        yield Evidence("logits", int(facts.blocks.size_bytes[row]), block_words(facts, row) + left)


def _chunked(facts: Facts, copies: Column) -> Remedy:
    """All but one chunk of each copy gone."""
    blocks, rows = facts.blocks, np.flatnonzero(copies)
    less = blocks.size_bytes[rows] - blocks.size_bytes[rows] // CHUNKS
    saved = Change(facts).add(blocks.born[rows], blocks.freed[rows], -less).saving().saved_bytes
    note = f"a linear layer and cross-entropy in one, as Liger's; here with one chunk of {CHUNKS} at a time"
    return Remedy("a loss that makes the logits in chunks", saved, RECORDED, note)
