"""The moment at which reserved grew to its peak, and why the bytes that were free then did not serve.

Reserved grows when a request fits no free piece of its stream and pool, so that moment shows the
free bytes that could not be used, and the places that they lay in say why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import Evidence
from vramscope.analysis.explain.places import block_category, block_words, count
from vramscope.analysis.explain.pools import Held, held_at
from vramscope.run.categories import plural
from vramscope.run.trace import Column
from vramscope.units import format_bytes

WHOLE = "cached whole"
"""The label of what the allocator would give back to a full card."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Reserved at its peak, for the first time."""

    facts: Facts
    moment: int
    row: int | None
    """The block that it grew for; None: not known."""
    held: Held

    @property
    def gap_bytes(self) -> int:
        """Reserved and not allocated."""
        return int(self.facts.reserved[self.moment] - self.facts.allocated[self.moment])


def growth_of(facts: Facts) -> Growth:
    """The growth to the peak, with the block that it was for, if that came next.

    Where the peak was there before the history began, the moment at which most of it was in use."""
    top, segments = int(np.argmax(facts.reserved)), facts.trace.segments
    if not np.any(segments.born == top):
        there = facts.reserved == facts.reserved[top]
        most = int(np.argmax(np.where(there, facts.allocated, -1)))
        return Growth(facts, most, None, held_at(facts.trace, most))
    row = int(np.searchsorted(facts.blocks.born, top))
    if row < len(facts.blocks):
        born, segment = int(facts.blocks.born[row]), facts.blocks.segment[row]
        grown_for = segments.expandable[segment] or segments.born[segment] == top
        if grown_for and np.all(facts.reserved[top : born + 1] == facts.reserved[top]):
            return Growth(facts, born, row, held_at(facts.trace, born))
    return Growth(facts, top, None, held_at(facts.trace, top))


def largest_free_bytes(growth: Growth) -> int:
    """The largest piece that was free in the block's stream and pool before reserved grew for it; 0: none."""
    if growth.row is None:
        return 0
    held = growth.held
    home = held.of_segment[growth.facts.blocks.segment[growth.row]]
    same = held.default & (held.stream == held.stream[home]) & (held.small == held.small[home])
    return int(held.largest_free_bytes[same & ~_new(growth)].max(initial=0))


def parts_of(growth: Growth) -> Iterator[Evidence]:
    """The gap by why it did not serve; the parts add up to it."""
    kinds = _kinds(growth)
    for kind, label in enumerate(_LABELS):
        chosen = kinds == kind
        if free := int(growth.held.free_bytes[chosen].sum()):
            yield Evidence(label, free, _NOTES[kind](growth, chosen))
    if waiting := int(growth.held.awaiting_bytes.sum()):
        yield Evidence("awaiting", waiting, "freed, but another stream may still be using it")


def _kinds(growth: Growth) -> Column:
    """int64, for each segment the first of the reasons that holds."""
    held = growth.held
    reasons = [
        ~held.default,
        held.stream != _stream(growth),
        held.expandable,
        _new(growth),
        held.used_bytes + held.awaiting_bytes == 0,
        2 * held.free_bytes > held.size_bytes,
    ]
    return np.select(reasons, list(range(len(reasons))), len(reasons))


def _private(_growth: Growth, _chosen: Column) -> str:
    return "pools of CUDA graphs and MemPools serve nobody else"


def _streams(_growth: Growth, _chosen: Column) -> str:
    return "free memory of one stream serves no other"


def _between(growth: Growth, chosen: Column) -> str:
    return f"in expandable segments, the largest piece {_largest(growth, chosen)}"


def _just_taken(_growth: Growth, _chosen: Column) -> str:
    return "the rest of the segment that was taken for it"


def _whole(growth: Growth, chosen: Column) -> str:
    """What lay last in the segments that are free as a whole."""
    facts = growth.facts
    rows = np.flatnonzero(_within(growth, chosen) & (facts.blocks.freed <= growth.moment))
    last = rows[np.argsort(facts.blocks.freed[rows], kind="stable")]
    newest = dict(zip(facts.blocks.segment[last].tolist(), last.tolist(), strict=True))
    sizes: dict[str, int] = {}
    for segment, row in newest.items():
        kind = plural(block_category(facts, row))
        sizes[kind] = sizes.get(kind, 0) + int(facts.trace.segments.size_bytes[segment])
    most = sorted(sizes, key=lambda kind: -sizes[kind])[:2]
    left = f", left by {' and '.join(most)}" if most else ""
    return f"{_segments(chosen)} with nothing in {'it' if chosen.sum() == 1 else 'them'}{left}"


def _open(growth: Growth, chosen: Column) -> str:
    """Of the segment with most free bytes the block that stays in it longest."""
    facts, held, blocks = growth.facts, growth.held, growth.facts.blocks
    worst = int(np.argmax(np.where(chosen, held.free_bytes, -1)))
    inside = _within(growth, np.arange(len(held.size_bytes)) == worst)
    rows = np.flatnonzero(inside & (blocks.born <= growth.moment) & (blocks.freed > growth.moment))
    words = f"{_segments(chosen)} more than half free"
    if not len(rows):
        return words
    row = int(rows[np.argmax(blocks.freed[rows])])
    free, size = (format_bytes(int(each)) for each in (held.free_bytes[worst], blocks.size_bytes[row]))
    return f"{words}; {free} in one that {size} keeps: {block_words(facts, row)}"


def _rest(growth: Growth, chosen: Column) -> str:
    return f"of {_segments(chosen)} more than half full, the largest piece {_largest(growth, chosen)}"


_LABELS = ("private pools", "other streams", "between blocks", "just taken", WHOLE, "held open", "remainders")
_NOTES: tuple[Callable[[Growth, Column], str], ...] = (
    *(_private, _streams, _between, _just_taken, _whole, _open, _rest),
)


def _segments(chosen: Column) -> str:
    return count(int(chosen.sum()), "segment")


def _largest(growth: Growth, chosen: Column) -> str:
    return format_bytes(int(growth.held.largest_free_bytes[chosen].max()))


def _new(growth: Growth) -> Column:
    """A mask: the segment that was taken for the block; none where it is expandable and only grew."""
    found = np.zeros(len(growth.held.size_bytes), bool)
    if growth.row is not None:
        segment = growth.facts.blocks.segment[growth.row]
        found[growth.held.of_segment[segment]] = not growth.facts.trace.segments.expandable[segment]
    return found


def _stream(growth: Growth) -> int:
    """The stream that asked; where that is not known, the one that has most."""
    if growth.row is not None:
        return int(growth.facts.blocks.stream[growth.row])
    return int(np.argmax(np.bincount(growth.held.stream, weights=growth.held.size_bytes)))


def _within(growth: Growth, chosen: Column) -> Column:
    """A mask: the blocks that ever lay in some of the segments."""
    homes = growth.held.of_segment[growth.facts.blocks.segment]
    found: Column = (homes >= 0) & chosen[homes]
    return found
