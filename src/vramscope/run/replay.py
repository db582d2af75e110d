"""From an allocator's events to its blocks and segments: where each lay, how large it was, how long it lived.

Torch records only the address and the bytes asked for.  The block that was given out is what the
allocator's rules make of the free block that began there, so nothing of its search has to be
modelled: events tell which free block it took, `run.rules` what it cut off, and neighbours that are
free are one block.  The result is exact wherever the history begins with what `start` says.

Events that cannot have happened like that (of another allocator, or after a gap) are counted and
made the best of: a block without a known place gets a segment of its own for as long as it lives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vramscope.run.actions import (
    ALLOC,
    FREE_COMPLETED,
    FREE_REQUESTED,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
)
from vramscope.run.events import Events
from vramscope.run.heap import BEFORE, Heap, Held
from vramscope.run.pieces import Pieces
from vramscope.run.rules import (
    MIN_BLOCK,
    NEVER,
    SMALL_BUFFER,
    SMALL_SIZE,
    Rules,
    least_rests,
    rounded_sizes,
    rules_of,
)
from vramscope.run.trace import SEGMENT_TYPES, Column, Segments


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a history comes to."""

    blocks: dict[str, Column]
    """The geometric columns of `Blocks`: address, requested_bytes, size_bytes, stream, segment, born, freed,
    returned.  First what was there before the history, then one row per alloc event, in their order."""
    segments: Segments
    faults: tuple[str, ...]
    """What in the history cannot have happened, as sentences with counts."""


def replay(
    events: Events,
    settings: Mapping[str, Any] | None = None,
    start: Iterable[Held] = (),
    unsplit: Collection[int] = (),
) -> Replayed:
    """The blocks and segments of a history.

    `settings` are the `allocator_settings` of torch's snapshot, `start` what the allocator held before the
    first event (nothing, if it was recorded from the beginning).  `unsplit` are the numbers of the pools
    that never split a block (``MemPool(no_split=True)``), which no event tells: see `unsplit_pools`."""
    heap, rules = Heap(len(events), Pieces(len(events))), rules_of(settings or {})
    for held in start:
        heap.hold(held)
    sizes = rounded_sizes(events.size, rules)
    _run(heap, events, sizes, _least_rests(events, sizes, rules, unsplit))
    return _Result(heap, events, rules).replayed()


def unsplit_pools(held: Iterable[Held], settings: Mapping[str, Any] | None = None) -> frozenset[int]:
    """The private pools with a block that any other pool would have split."""
    rules = rules_of(settings or {})
    found = [(each.pool, block) for each in held if each.pool for block in each.blocks]
    sizes = rounded_sizes(np.array([block.requested for _, block in found], np.int64), rules)
    rests = np.array([block.size for _, block in found], np.int64) - sizes
    whole = np.flatnonzero(rests >= least_rests(sizes, rules))
    return frozenset(found[each][0] for each in whole)


def _least_rests(events: Events, sizes: Column, rules: Rules, unsplit: Collection[int]) -> Column:
    """What must be left over of the free block that an alloc event takes, for it to be split."""
    least = least_rests(sizes, rules)
    least[_expandable_then(events) & (events.pool == 0)] = MIN_BLOCK
    least[np.isin(events.pool, list(unsplit))] = NEVER
    return least


def _expandable_then(events: Events) -> Column:
    """Whether expandable segments were on at each moment, by what the default pool last obtained.

    They can be turned on and off while the program runs, and segments of cudaMalloc are then split
    differently too."""
    told = ((events.action == SEGMENT_ALLOC) | (events.action == SEGMENT_MAP)) & (events.pool == 0)
    moments = np.flatnonzero(told)
    if not len(moments):
        return np.zeros(len(events), np.bool_)
    last = np.maximum(np.searchsorted(moments, np.arange(len(events)), side="right") - 1, 0)
    found: Column = (events.action == SEGMENT_MAP)[moments[last]]
    return found


def _run(heap: Heap, events: Events, sizes: Column, least_rests: Column) -> None:
    """All events; the three frequent ones are written out here, for speed."""
    columns = (events.action, events.address, events.size, sizes, least_rests)
    free, begins, live = heap.free, heap.begins, heap.live
    ends, homes, freed, returned, pieces = heap.ends, heap.homes, heap.freed, heap.returned, heap.pieces_of
    own, moments, gone, mapped_at = heap.own, heap.moments, heap.pieces.gone, heap.pieces.mapped_at
    nowhere = (-1, 0)
    for moment, (action, address, told, size, least) in enumerate(
        zip(*(c.tolist() for c in columns), strict=True)
    ):
        if action == ALLOC:
            entry = free.get(address)
            end, home = entry or nowhere
            piece = home if home >= 0 else mapped_at(address)
            if end - address < size or piece < 0 or gone[piece] != moments or address in live:
                heap.give(address, *heap.misplaced(moment, address, size, int(events.stream[moment])))
                continue
            stop = address + size
            del free[address]
            if end - stop >= least or (home < 0 and end - stop >= MIN_BLOCK):
                free[stop] = (end, home)
                begins[end] = stop
            else:
                stop = end
                begins.pop(end, None)
            live[address] = len(ends)
            ends.append(stop)
            homes.append(home)
            freed.append(moments)
            returned.append(moments)
            pieces.append(piece)
        elif action == FREE_REQUESTED:
            block = live.get(address, -1)
            if block < 0 or freed[block] != moments:
                heap.faults["a block was freed that is not known"] += 1
            else:
                freed[block] = moment
        elif action == FREE_COMPLETED:
            block = live.pop(address, -1)
            if block < 0:
                heap.faults["a block could be used again that is not known"] += 1
                continue
            if freed[block] == moments:
                freed[block] = moment
            if own and block in own:
                heap.back(moment, block, address)
                continue
            returned[block] = moment
            end, home = ends[block], homes[block]
            after = free.get(end)
            if after is not None and after[1] == home:
                del free[end]
                end = after[0]
            before = begins.get(address)
            if before is not None and free.get(before) == (address, home):
                del begins[address]
                address = before
            free[address] = (end, home)
            begins[end] = address
        elif action <= SEGMENT_UNMAP:
            _segment_event(
                heap, action, moment, address, told, int(events.stream[moment]), int(events.pool[moment])
            )


def _segment_event(
    heap: Heap, action: int, moment: int, address: int, size: int, stream: int, pool: int
) -> None:
    if size <= 0:
        heap.faults["a segment has no size"] += 1
    elif action == SEGMENT_ALLOC:
        heap.add_segment(moment, address, size, stream, pool)
    elif action == SEGMENT_FREE:
        heap.drop_segment(moment, address)
    elif action == SEGMENT_MAP:
        heap.map(moment, address, size, stream, pool)
    elif action == SEGMENT_UNMAP:
        heap.unmap(moment, address, size)


class _Result:
    """The heap's lists as columns."""

    def __init__(self, heap: Heap, events: Events, rules: Rules) -> None:
        self._heap, self._events, self._rules = heap, events, rules

    def replayed(self) -> Replayed:
        """Blocks end with their segments at the latest, whatever the history says."""
        heap, asked = self._heap, self._asked()
        gone = np.array(heap.pieces.gone, np.int64)
        segment = heap.pieces.parts_with(np.array(heap.pieces_of, np.int32), asked["address"])
        freed, returned = np.array(heap.freed, np.int64), np.array(heap.returned, np.int64)
        if len(segment):
            freed = np.minimum(freed, gone[segment])
            returned = np.maximum(np.minimum(returned, gone[segment]), freed)
        blocks = {**asked, "segment": segment, "freed": freed, "returned": returned}
        blocks["size_bytes"] = np.array(heap.ends, np.int64) - blocks["address"].astype(np.int64)
        return Replayed(blocks, self._segments(blocks), self._faults())

    def _asked(self) -> dict[str, Column]:
        """What events and the beginning tell of each block."""
        heap, events = self._heap, self._events
        asked = np.flatnonzero(events.action == ALLOC)
        held = heap.held
        return {
            "address": _joined([each.address for each in held], events.address[asked], np.uint64),
            "requested_bytes": _joined([each.requested for each in held], events.size[asked], np.int64),
            "stream": _joined(heap.held_streams, events.stream[asked], np.int32),
            "born": _joined([BEFORE] * len(held), asked, np.int64),
        }

    def _segments(self, blocks: dict[str, Column]) -> Segments:
        pieces = self._heap.pieces
        columns = {
            "address": pieces.addresses,
            "size_bytes": pieces.sizes,
            "stream": pieces.streams,
            "pool": pieces.pools,
            "small": self._small(blocks),
            "expandable": pieces.expandable,
            "born": pieces.born,
            "freed": pieces.gone,
        }
        return Segments(**{name: np.array(columns[name], kind) for name, kind in SEGMENT_TYPES.items()})

    def _small(self, blocks: dict[str, Column]) -> Column:
        """By the blocks that lay in it; one that was never used by its size."""
        small: Column = np.array(self._heap.pieces.sizes, np.int64) == SMALL_BUFFER
        small[blocks["segment"]] = rounded_sizes(blocks["requested_bytes"], self._rules) <= SMALL_SIZE
        return small

    def _faults(self) -> tuple[str, ...]:
        return tuple(f"{what}: {times} times" for what, times in self._heap.faults.items())


def _joined(first: list[int], then: Column, kind: type) -> Column:
    found: Column = np.concatenate([np.array(first, kind), then.astype(kind)])
    return found
