"""The history of one allocator as torch records it: each thing that it did, as columns.

The names of the actions are those of ``TraceEntry::Action`` in torch's c10/core/CachingDeviceAllocator.h,
as its snapshots spell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vramscope.run.actions import ACTIONS, OTHER
from vramscope.run.trace import Column

_NUMBER = {name: number for number, name in enumerate(ACTIONS)}
EVENT_TYPES = {
    "action": "|u1",
    "address": "<u8",
    "size": "<i8",
    "stream": "<i4",
    "pool": "<i4",
    "time_us": "<i8",
}


@dataclass(frozen=True, slots=True)
class Events:
    """One row per event, in the order in which the allocator saw them; a row's number is its moment."""

    action: Column
    """uint8, index into ACTIONS."""
    address: Column
    """uint64, of the block, the segment or the mapped range; 0 where there is none."""
    size: Column
    """int64, bytes: what was *asked for* of a block, the whole size of a segment or a mapped range."""
    stream: Column
    """int32, index into `Trace.streams`."""
    pool: Column
    """int32, index into `Trace.pools`; an older torch does not tell it, and all are 0."""
    time_us: Column
    """int64, microseconds since 1970; 0 where torch did not tell."""

    def __len__(self) -> int:
        return len(self.action)


def no_events() -> Events:
    """A history in which nothing happened."""
    return Events(**{name: np.empty(0, kind) for name, kind in EVENT_TYPES.items()})


class Numbers(dict[Any, int]):
    """Numbers things in the order in which they are first asked for; `first` has 0."""

    def __init__(self, first: Any) -> None:
        super().__init__({first: 0})

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number


def events_of(entries: Sequence[Mapping[str, Any]], streams: Numbers, pools: Numbers) -> Events:
    """The events in one device's part of ``torch.cuda.memory._snapshot()["device_traces"]``.

    `streams` and `pools` number what the columns mean and learn what is new to them."""
    columns = {
        "action": [_NUMBER.get(entry["action"], OTHER) for entry in entries],
        "address": [entry.get("addr", 0) for entry in entries],  # "oom" has none
        "size": [entry["size"] for entry in entries],
        "stream": [streams[entry["stream"]] for entry in entries],
        "pool": [pools[tuple(entry.get("pool_id", (0, 0)))] for entry in entries],
        "time_us": [entry.get("time_us", 0) for entry in entries],
    }
    return Events(**{name: np.array(columns[name], kind) for name, kind in EVENT_TYPES.items()})
