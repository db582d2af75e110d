"""Why allocated exceeds what tensors ask for: blocks are rounded up, and rests too small to use stay with them."""

from __future__ import annotations

from collections.abc import Iterator

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import Evidence, Finding
from vramscope.analysis.explain.places import block_words, count
from vramscope.run.rules import MIN_BLOCK
from vramscope.run.trace import Column
from vramscope.units import format_bytes

LEAST_SHARE = 0.02
"""A smaller part of the peak is no puzzle."""


def allocated_above_requested(facts: Facts) -> Iterator[Finding]:
    """What rounding takes at the allocated peak."""
    blocks, rows = facts.blocks, facts.live(facts.peak)
    rests = blocks.size_bytes[rows] - blocks.requested_bytes[rows]
    lost = int(rests.sum())
    if lost <= LEAST_SHARE * facts.peak_bytes:
        return
    whole = rests >= MIN_BLOCK
    yield Finding(
        "rounding",
        f"Why is {format_bytes(lost)} more allocated than tensors asked for?",
        f"The allocator hands out blocks in multiples of {MIN_BLOCK} B, and leaves a rest of up to 1 MiB of a "
        "larger free block with the block that it gives.",
        lost,
        evidence=(*_part(facts, rows[~whole], "rounding"), *_part(facts, rows[whole], "rests")),
    )


def _part(facts: Facts, rows: Column, label: str) -> Iterator[Evidence]:
    rests = facts.blocks.size_bytes[rows] - facts.blocks.requested_bytes[rows]
    if not rests.sum():
        return
    row = int(rows[rests.argmax()])
    most = format_bytes(int(rests.max()))
    yield Evidence(
        label, int(rests.sum()), f"{count(len(rows), 'block')}, at most {most}: {block_words(facts, row)}"
    )
