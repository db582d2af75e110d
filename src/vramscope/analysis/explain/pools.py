"""How full each segment is at one moment, and how large the pieces are that are free in it.

Expandable memory is one segment for each stream and pool, however many pieces of it are mapped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vramscope.analysis.lookup import sums
from vramscope.run.trace import Column, Trace


@dataclass(frozen=True, slots=True)
class Held:
    """The segments that are there at a moment: one row each, expandable ones of a stream and pool as one."""

    size_bytes: Column
    """int64, reserved"""
    used_bytes: Column
    """int64, allocated"""
    awaiting_bytes: Column
    """int64, freed by the program, but another stream may still use it."""
    largest_free_bytes: Column
    """int64, the largest piece that a block could be cut from."""
    stream: Column
    """int32, index into `Trace.streams`."""
    default: Column
    """bool, not of a private pool."""
    small: Column
    """bool, of the pool for requests of up to 1 MiB; not told apart where expandable."""
    expandable: Column
    """bool"""
    of_segment: Column
    """int64, for each segment of the trace its row here; -1: it is not there at the moment."""

    @property
    def free_bytes(self) -> Column:
        """int64, what is left of each."""
        found: Column = self.size_bytes - self.used_bytes - self.awaiting_bytes
        return found


def held_at(trace: Trace, moment: int) -> Held:
    """The segments at a moment."""
    segments, blocks = trace.segments, trace.blocks
    here = np.flatnonzero((segments.born <= moment) & (segments.freed > moment))
    first, group = np.unique(_keys(trace)[here], return_index=True, return_inverse=True)[1:]
    of_segment = np.full(len(segments), -1, np.int64)
    of_segment[here] = group
    inside = of_segment[blocks.segment] >= 0
    used = np.flatnonzero(inside & (blocks.born <= moment) & (blocks.freed > moment))
    awaiting = np.flatnonzero(inside & (blocks.freed <= moment) & (blocks.returned > moment))
    taken = np.concatenate([used, awaiting])
    return Held(
        size_bytes=sums(group, segments.size_bytes[here], len(first)),
        used_bytes=sums(of_segment[blocks.segment[used]], blocks.size_bytes[used], len(first)),
        awaiting_bytes=sums(of_segment[blocks.segment[awaiting]], blocks.size_bytes[awaiting], len(first)),
        largest_free_bytes=_largest_free(trace, here, taken, group, len(first)),
        stream=segments.stream[here][first],
        default=np.array([pool == (0, 0) for pool in trace.pools])[segments.pool[here][first]],
        small=segments.small[here][first],
        expandable=segments.expandable[here][first],
        of_segment=of_segment,
    )


def _keys(trace: Trace) -> Column:
    """For each segment a number that those which are one share."""
    segments = trace.segments
    shared = -1 - (segments.stream.astype(np.int64) * len(trace.pools) + segments.pool)
    own = np.arange(len(segments), dtype=np.int64)
    found: Column = np.where(segments.expandable, shared, own)
    return found


def _largest_free(trace: Trace, here: Column, taken: Column, group: Column, length: int) -> Column:
    """int64, the longest stretch of each group's addresses in which no block lies."""
    segments, blocks = trace.segments, trace.blocks
    begins, ends = _ranges(segments.address[here].astype(np.int64), segments.size_bytes[here], group)
    order = np.argsort(blocks.address[taken])
    address = blocks.address[taken][order].astype(np.int64)
    # Between two blocks, or a block and an edge of its range, everything is free.
    starts = np.sort(np.concatenate([begins[0], address + blocks.size_bytes[taken][order]]))
    stops = np.sort(np.concatenate([address, ends]))
    owner = begins[1][np.searchsorted(begins[0], starts, side="right") - 1]
    found = np.zeros(length, np.int64)
    np.maximum.at(found, owner, stops - starts)
    return found


def _ranges(address: Column, size: Column, group: Column) -> tuple[tuple[Column, Column], Column]:
    """The begins of stretches of segments of one group that touch, with their groups, and the ends."""
    order = np.argsort(address)
    address, end, group = address[order], (address + size)[order], group[order]
    joins = (end[:-1] == address[1:]) & (group[:-1] == group[1:])
    first = np.concatenate([[True], ~joins])
    last = np.concatenate([~joins, [True]])
    return (address[first], group[first]), end[last]
