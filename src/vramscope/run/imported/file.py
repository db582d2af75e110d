"""What a snapshot's file holds, whichever torch wrote it, with nothing in it trusted.

The fields are those of ``torch.cuda.memory._snapshot`` (torch/cuda/memory.py describes them).  Older ones
differ: the whole may be a list of segments, a block's stack may be in its `history` and its address not be told,
and events may lack their time and their pool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite
from typing import Any

import numpy as np

from vramscope.errors import RunError
from vramscope.run.actions import ACTIONS, OTHER, SEGMENT_UNMAP
from vramscope.run.events import EVENT_TYPES, Events, Numbers
from vramscope.run.heap import Held, Placed
from vramscope.run.imported.places import clean
from vramscope.run.imported.stacks import Stacks
from vramscope.run.soundness import LATEST_US
from vramscope.run.trace import Column

MOST_BYTES = 1 << 40
"""Of one block or segment: more than any card has."""
_MOST_ADDRESS = 1 << 62
_MOST_DEVICES = 1024
_MOST_POOL = 1 << 31
_MOST_SETTINGS = 200
_NUMBER = {name: number for number, name in enumerate(ACTIONS)}
_FREE = "inactive"
_ALLOCATED = "active_allocated"


@dataclass(slots=True)
class Device:
    """One card's part of a snapshot."""

    number: int
    events: Events
    stacks: list[int]
    """Per event, the number of its stack."""
    notes: dict[int, str] = field(default_factory=dict)
    """The user's metadata, by event."""
    held: list[Held] = field(default_factory=list)
    """The segments that were there when the snapshot was taken."""
    held_stacks: dict[int, int] = field(default_factory=dict)
    """By the address of a block in them, the number of its stack."""
    small: dict[int, bool] = field(default_factory=dict)
    """By the address of a segment, whether it is of the small pool."""
    out_of_memory: list[int] = field(default_factory=list)
    """Bytes that were asked for in vain."""
    left_out: int = 0
    """Entries that are none."""


@dataclass(slots=True)
class Dump:
    """A snapshot, its parts sorted by card."""

    stacks: Stacks
    streams: Numbers
    pools: Numbers
    devices: list[Device]
    settings: dict[str, Any]
    annotations: list[tuple[int, str, bool, int]]
    """Card, name, whether it begins, and when in microseconds."""


def dump_of(data: object, size: int) -> Dump:
    """Sorts what was unpickled from a file of `size` bytes; RunError if it is no snapshot."""
    if isinstance(data, list):
        data = {"segments": data}
    if not isinstance(data, dict) or not {"segments", "device_traces"} & data.keys():
        raise RunError("it has neither segments nor device_traces, as a snapshot of torch's allocator has")
    traces, segments = _dicts(data.get("device_traces"), list), _dicts(data.get("segments"), dict)
    _refuse_shared([*traces, segments, *(_dicts(each.get("blocks"), dict) for each in segments)], size)
    dump = Dump(
        Stacks(),
        Numbers(0),
        Numbers((0, 0)),
        [],
        _settings(data.get("allocator_settings")),
        _annotations(data),
    )
    by_device: dict[int, list[Mapping[str, Any]]] = {}
    for each in segments:
        by_device.setdefault(_whole(each.get("device"), _MOST_DEVICES) or 0, []).append(each)
    for number in sorted({*by_device, *(n for n, trace in enumerate(traces[:_MOST_DEVICES]) if trace)}):
        trace = traces[number] if number < len(traces) else []
        dump.devices.append(_device(number, trace, by_device.get(number, []), dump))
    return dump


def _device(number: int, trace: Sequence[Any], segments: Iterable[Mapping[str, Any]], dump: Dump) -> Device:
    entries = _dicts(trace, dict)
    events, kept = _events(entries, dump)
    if not kept.all():
        entries = [entry for entry, good in zip(entries, kept.tolist(), strict=True) if good]
    stacks = [dump.stacks.of(entry.get("frames")) for entry in entries]
    found = Device(number, events, stacks, left_out=len(trace) - len(entries))
    found.notes = _notes(entries)
    found.out_of_memory = [
        _whole(entry.get("size"), _MOST_ADDRESS) or 0 for entry in entries if entry.get("action") == "oom"
    ]
    for each in segments:
        _segment(found, each, dump)
    return found


# -- events ---------------------------------------------------------------------------------------
def _events(entries: Sequence[Mapping[str, Any]], dump: Dump) -> tuple[Events, Column]:
    """The events that are some, and which entries they are."""
    action = np.array([_action(entry.get("action")) for entry in entries], np.uint8)
    columns = {
        "address": _column(entries, "addr", _MOST_ADDRESS),
        "size": _column(entries, "size", MOST_BYTES),
        "time_us": _column(entries, "time_us", LATEST_US - 1),
    }
    tells = action <= SEGMENT_UNMAP  # of the rest neither address nor size is needed
    kept = ~tells | ((columns["address"] >= 0) & (columns["size"] >= 0))
    told = {name: np.maximum(column, 0) for name, column in columns.items()}
    told |= {"action": action, "stream": _streams(entries, dump), "pool": _pools(entries, dump)}
    return Events(**{name: told[name].astype(kind)[kept] for name, kind in EVENT_TYPES.items()}), kept


def _action(told: object) -> int:
    return _NUMBER.get(told, OTHER) if isinstance(told, str) else OTHER


def _column(entries: Sequence[Mapping[str, Any]], key: str, most: int) -> Column:
    """int64, -1 where the field is no number that can be; 0 where it is missing."""
    values = [entry.get(key, 0) for entry in entries]
    if not set(map(type, values)) <= {int} or min(values, default=0) < 0 or max(values, default=0) > most:
        values = [each if type(each) is int and 0 <= each <= most else -1 for each in values]
    return np.array(values, np.int64)


def _streams(entries: Sequence[Mapping[str, Any]], dump: Dump) -> Column:
    return np.array([dump.streams[_handle(entry.get("stream"))] for entry in entries], np.int32)


def _pools(entries: Sequence[Mapping[str, Any]], dump: Dump) -> Column:
    told = [entry.get("pool_id") for entry in entries]
    if not any(told):  # an older torch does not tell it
        return np.zeros(len(told), np.int32)
    return np.array([dump.pools[_pool(each)] for each in told], np.int32)


# -- the state at the end -------------------------------------------------------------------------
def _segment(device: Device, told: Mapping[str, Any], dump: Dump) -> None:
    """A segment with its blocks, without those that lie outside it or on one another."""
    address = _whole(told.get("address"), _MOST_ADDRESS)
    blocks = _dicts(told.get("blocks"), dict)
    total = _whole(told.get("total_size"), MOST_BYTES) or sum(_size(block) for block in blocks)
    if address is None or not 0 < total <= MOST_BYTES:
        device.left_out += 1
        return
    placed, at = [], address
    found = sorted(_all_placed(device, blocks, address, dump), key=lambda block: block.address)
    for block in found:
        if at <= block.address <= address + total - block.size:
            placed.append(block)
            at = block.address + block.size
    device.left_out += len(found) - len(placed)
    expandable = told.get("is_expandable") is True
    stream, pool = dump.streams[_handle(told.get("stream"))], dump.pools[_pool(told.get("segment_pool_id"))]
    device.held.append(Held(address, total, stream, pool, expandable, tuple(placed)))
    device.small[address] = told.get("segment_type") == "small"


def _all_placed(
    device: Device, blocks: Iterable[Mapping[str, Any]], address: int, dump: Dump
) -> Iterator[Placed]:
    """Blocks that are not free; without addresses of their own they follow each other."""
    for block in blocks:
        address = _whole(block.get("address"), _MOST_ADDRESS) or address
        size = _size(block)
        if size and block.get("state") != _FREE:
            yield _placed(device, block, address, size, dump)
        address += size


def _size(block: Mapping[str, Any]) -> int:
    return _whole(block.get("size"), MOST_BYTES) or 0


def _placed(device: Device, told: Mapping[str, Any], address: int, size: int, dump: Dump) -> Placed:
    history = _dicts(told.get("history"), dict)
    frames = told.get("frames") if "frames" in told else history[0].get("frames") if history else None
    device.held_stacks[address] = dump.stacks.of(frames)
    requested = _whole(told.get("requested_size"), size)
    return Placed(address, size, size if requested is None else requested, told.get("state") != _ALLOCATED)


# -- fields ---------------------------------------------------------------------------------------
def _dicts(told: object, kind: type) -> list[Any]:
    """The items of a list that are of a kind."""
    if not isinstance(told, list):
        return []
    return told if set(map(type, told)) <= {kind} else [item for item in told if type(item) is kind]


def _whole(told: object, most: int) -> int | None:
    return told if type(told) is int and 0 <= told <= most else None


def _handle(told: object) -> int:
    """A stream's handle; it is an address."""
    return _whole(told, _MOST_ADDRESS) or 0


def _pool(told: object) -> tuple[int, int]:
    if told == (0, 0) or not isinstance(told, (list, tuple)) or len(told) != 2:
        return (0, 0)
    return (_whole(told[0], _MOST_POOL) or 0, _whole(told[1], _MOST_POOL) or 0)


def _notes(entries: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """The texts among the users' metadata, by event; each is looked at once."""
    known: dict[str, str] = {}
    found = {}
    for index, entry in enumerate(entries):
        told = entry.get("user_metadata")
        if isinstance(told, str) and told:
            found[index] = known[told] if told in known else known.setdefault(told, clean(told))
    return found


def _settings(told: object, depth: int = 1) -> dict[str, Any]:
    """The allocator's settings: numbers, texts, and tables of them."""
    found: dict[str, Any] = {}
    for key, value in islice(told.items(), _MOST_SETTINGS) if isinstance(told, dict) else ():
        if isinstance(value, dict) and depth:
            found[clean(str(key))] = _settings(value, depth - 1)
        elif isinstance(value, str):
            found[clean(str(key))] = clean(value)
        elif (
            value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and isfinite(value))
        ):
            found[clean(str(key))] = value
    return found


def _annotations(data: Mapping[str, Any]) -> list[tuple[int, str, bool, int]]:
    found = []
    for each in _dicts(data.get("external_annotations"), dict):
        name, stage, time = each.get("name"), each.get("stage"), _whole(each.get("time_us"), LATEST_US)
        if isinstance(name, str) and stage in ("START", "END") and time is not None:
            found.append((_whole(each.get("device"), _MOST_DEVICES) or 0, name, stage == "START", time))
    return found


def _refuse_shared(lists: Sequence[Sequence[Any]], size: int) -> None:
    """A file can name one list a million times; what is read must not be more than the file."""
    if sum(map(len, lists)) > size:
        raise RunError("it repeats its lists, as no snapshot does")
