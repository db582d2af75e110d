"""What an allocator held before a history that does not begin empty: a ring that was full, a late start.

Known are the state at the end and the events.  What was there before is what the end has and no event made,
and what events freed, unmapped or gave back without having made it.  Of a block that did not live to the
end only the bytes asked for are told; its size follows from the rules and from the room that it had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from vramscope.run.heap import Held, Placed
from vramscope.run.pieces import Pieces
from vramscope.run.rules import SMALL_SIZE, rounded_sizes, rules_of
from vramscope.run.trace import Column


@dataclass(frozen=True, slots=True)
class Start:
    """What was there before the first event."""

    held: tuple[Held, ...]
    estimated: int = 0
    """Blocks whose size is not told, only what was asked for."""


def start_of(events: Events, end: Sequence[Held], settings: Mapping[str, Any]) -> Start:
    """The state before the first event, from the events and the state at the end."""
    segments = [*_classic(events, end), *_mapped(events, end)]
    blocks, estimated = _blocks(events, end, settings)
    return Start(tuple(_filled(segments, blocks)), estimated)


def _classic(events: Events, end: Sequence[Held]) -> list[Held]:
    """Segments of cudaMalloc: those of the end that no event made, those given back that none made."""
    moments, first = _firsts(events, (SEGMENT_ALLOC, SEGMENT_FREE))
    made = {int(events.address[moment]) for moment in moments}
    kept = [replace(held, blocks=()) for held in end if not held.expandable and held.address not in made]
    given_back = [_held(events, moment) for moment in first if events.action[moment] == SEGMENT_FREE]
    return [*kept, *given_back]


def _held(events: Events, moment: int) -> Held:
    address, size = int(events.address[moment]), int(events.size[moment])
    return Held(address, size, int(events.stream[moment]), int(events.pool[moment]))


def _mapped(events: Events, end: Sequence[Held]) -> list[Held]:
    """Mapped ranges: those of the end, less what events mapped and with what they unmapped, last event first."""
    pieces = Pieces(len(events))
    for held in end:
        if held.expandable:
            pieces.map(len(events), held.address, held.size, held.stream, held.pool)
    moments = np.flatnonzero((events.action == SEGMENT_MAP) | (events.action == SEGMENT_UNMAP))
    for moment in moments[::-1].tolist():
        piece = _held(events, moment)
        if events.action[moment] == SEGMENT_MAP:
            pieces.unmap(moment, piece.address, piece.size)
        else:
            pieces.map(moment, piece.address, piece.size, piece.stream, piece.pool)
    return [
        Held(
            pieces.addresses[row], pieces.sizes[row], pieces.streams[row], pieces.pools[row], expandable=True
        )
        for row in pieces.mapped_rows()
    ]


def _blocks(
    events: Events, end: Sequence[Held], settings: Mapping[str, Any]
) -> tuple[dict[int, Placed], int]:
    """By address, the blocks that were there: known from the end, or from an event that freed them."""
    asked, first = _firsts(events, (ALLOC, FREE_REQUESTED, FREE_COMPLETED))
    known = {int(events.address[moment]) for moment in asked}
    blocks = {
        b.address: replace(b, pending=False) for held in end for b in held.blocks if b.address not in known
    }
    freed = np.array([moment for moment in first if events.action[moment] != ALLOC], np.int64)
    sizes = rounded_sizes(events.size[freed], rules_of(settings))
    for moment, size in zip(freed.tolist(), sizes.tolist(), strict=True):
        address = int(events.address[moment])
        pending = bool(events.action[moment] == FREE_COMPLETED)
        blocks[address] = Placed(address, size, int(events.size[moment]), pending)
    return blocks, len(freed)


def _firsts(events: Events, actions: tuple[int, ...]) -> tuple[Column, list[int]]:
    """The moments of some actions, and of those the first one at each address."""
    moments = np.flatnonzero(np.isin(events.action, actions))
    _, index = np.unique(events.address[moments], return_index=True)
    return moments, moments[index].tolist()


def _filled(segments: Sequence[Held], blocks: Mapping[int, Placed]) -> list[Held]:
    """The segments with the blocks that lie in them, in order of address."""
    ordered = sorted(blocks.values(), key=lambda block: block.address)
    addresses = [block.address for block in ordered]
    found = []
    for held in segments:
        low, high = np.searchsorted(addresses, [held.address, held.address + held.size])
        found.append(replace(held, blocks=tuple(_fitted(held, ordered[low:high]))))
    return found


def _fitted(held: Held, blocks: Sequence[Placed]) -> list[Placed]:
    """Blocks that end where the next one begins at the latest, and leave no rest that could not be one.

    In segments of cudaMalloc for requests of more than 1 MiB a free block is larger than 1 MiB."""
    found = []
    for index, block in enumerate(blocks):
        end = blocks[index + 1].address if index + 1 < len(blocks) else held.address + held.size
        room = end - block.address
        whole = not held.expandable and block.size > SMALL_SIZE and room - block.size <= SMALL_SIZE
        size = room if whole or room < block.size else block.size
        found.append(replace(block, size=size, requested=min(block.requested, size)))
    return found
