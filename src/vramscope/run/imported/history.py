"""One card's part of a snapshot as a Trace: its events replayed, its blocks with all that is known of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from vramscope.run.actions import ALLOC, ANNOTATE, SEGMENT_UNMAP
from vramscope.run.categories import INDEX
from vramscope.run.events import EVENT_TYPES, Events, Numbers, no_events
from vramscope.run.imported.file import Device, Dump
from vramscope.run.imported.kinds import kinds_of
from vramscope.run.imported.limits import notes_of
from vramscope.run.imported.metadata import Metadata, metadata_of
from vramscope.run.imported.phases import spans_of, spans_told
from vramscope.run.imported.start import Start, start_of
from vramscope.run.replay import Replayed, replay, unsplit_pools
from vramscope.run.trace import BLOCK_TYPES, Blocks, Column, Module, Segments, Span, Tables, Trace


@dataclass(slots=True)
class History:
    """A card's events and what they lead to."""

    device: Device
    events: Events
    """Those that change something."""
    stacks: Column
    """int64, per event the number of its stack."""
    start: Start
    found: Replayed
    moments: int
    recorded: bool
    """False: there were no events, and each block that was there at the end stands for one."""
    described: bool = False
    """It was exported by vramscope, with what was known of each block."""
    differing: int = 0
    """Blocks at the end whose size the snapshot has otherwise than the events."""
    corrected: bool = False
    """Those have the snapshot's sizes."""
    missing: int = 0
    """Blocks of which only one of the two knows at the end."""


def traces_of(dump: Dump) -> list[Trace]:
    """A trace for each card that the snapshot has anything of."""
    modules, names = Numbers(""), Numbers("")
    parts = [_parts(_history(device, dump), dump, modules, names) for device in dump.devices]
    tables = dump.stacks.tables([Module(path) for path in modules], names)
    return [_trace(history, blocks, spans, tables, dump) for history, blocks, spans in parts]


# -- what happened --------------------------------------------------------------------------------
def _history(device: Device, dump: Dump) -> History:
    kept = device.events.action <= SEGMENT_UNMAP
    events = Events(**{name: getattr(device.events, name)[kept] for name in EVENT_TYPES})
    stacks = np.array(device.stacks, np.int64)[kept]
    if not len(events):
        return _state_alone(device, events, stacks)
    start = start_of(events, device.held, dump.settings)
    unsplit = unsplit_pools(device.held, dump.settings)
    found = replay(events, dump.settings, start.held, unsplit)
    history = History(device, events, stacks, start, found, len(events), recorded=True)
    _agree(history)
    return history


def _state_alone(device: Device, events: Events, stacks: Column) -> History:
    """Without events: segments and their blocks, one after the other, as if each had come just then."""
    found = replay(no_events(), {}, device.held)
    count = len(found.segments) + len(found.blocks["born"])
    blocks = found.blocks
    place = np.arange(len(blocks["born"])) + blocks["segment"] + 1
    used = np.zeros(count, np.bool_)
    used[place] = True
    pending = blocks["freed"] < 0
    blocks |= {
        "born": place,
        "freed": np.where(pending, place, count),
        "returned": np.full(len(place), count),
    }
    segments = replace(
        found.segments,
        born=np.flatnonzero(~used).astype(np.int64),
        freed=np.full(len(found.segments), count, np.int64),
    )
    told = Replayed(blocks, segments, found.faults)
    return History(device, events, stacks, Start(()), told, count, recorded=False)


def _agree(history: History) -> None:
    """Holds the state at the end against the snapshot's own, which is right where they differ in size."""
    blocks, moments = history.found.blocks, history.moments
    rows = np.flatnonzero(blocks["returned"] == moments)
    live = dict(zip(blocks["address"][rows].tolist(), rows.tolist(), strict=True))
    sizes = blocks["size_bytes"].copy()
    for block in (block for held in history.device.held for block in held.blocks):
        row = live.pop(block.address, None)
        if row is None:
            history.missing += 1
        elif sizes[row] != block.size:
            sizes[row] = block.size
            history.differing += 1
    history.missing += len(live)
    history.corrected = history.differing > 0 and _can_be(history, sizes)
    if history.corrected:
        blocks["size_bytes"] = sizes


def _can_be(history: History, sizes: Column) -> bool:
    """Whether blocks of these sizes hold what was asked for, and have room in what was reserved."""
    blocks, segments, moments = history.found.blocks, history.found.segments, history.moments
    change = np.zeros(moments + 1, np.int64)
    for born, freed, size in (
        (segments.born, segments.freed, segments.size_bytes),
        (blocks["born"], blocks["freed"], -sizes),
    ):
        np.add.at(change, np.maximum(born, 0), size)
        np.subtract.at(change, np.maximum(freed, 0), size)
    return bool((np.cumsum(change[:moments]) >= 0).all() and (sizes >= blocks["requested_bytes"]).all())


# -- what is known of each block ------------------------------------------------------------------
def _parts(
    history: History, dump: Dump, modules: Numbers, names: Numbers
) -> tuple[History, dict[str, Column], tuple[Span, ...]]:
    blocks, events = history.found.blocks, history.events
    says, tabled = np.array(dump.stacks.says, np.int64), np.array(dump.stacks.tabled, np.int64)
    stack = _stacks(history)
    annotations = [each[1:] for each in dump.annotations if each[0] == history.device.number]
    spans: tuple[Span, ...] = (Span(0, "other"),)
    metadata = list(_metadata(history))
    history.described = any(each.category for _, each in metadata)
    told = blocks
    if history.recorded:
        spans = spans_told(
            [(int(blocks["born"][row]), each.phase, each.step) for row, each in metadata], events
        )
        spans = spans or spans_of(
            events, says[history.stacks], tabled[history.stacks], annotations, not history.start.held
        )
    else:
        told = {**blocks, "born": np.full_like(blocks["born"], -1)}
    category = kinds_of(told, history.moments, says[stack], spans)
    module, name = np.zeros(len(stack), np.int32), np.zeros(len(stack), np.int32)
    for row, each in metadata:
        if each.category:
            category[row] = INDEX[each.category]
        module[row], name[row] = modules[each.module], names[each.name]
    places = _backward_places(blocks, spans, tabled[stack])
    labels = {"category": category, "module": module, "name": name, "stack": places}
    return history, {**blocks, **labels, "flags": np.zeros(len(stack), np.uint8)}, spans


def _stacks(history: History) -> Column:
    """int64, per block the number of the stack that asked for it; 0 where none is known."""
    blocks, stacks = history.found.blocks, history.stacks
    found = np.zeros(len(blocks["born"]), np.int64)
    held = history.device.held_stacks
    if not history.recorded:
        return np.array([held.get(address, 0) for address in blocks["address"].tolist()], np.int64)
    born = blocks["born"] >= 0
    found[born] = stacks[blocks["born"][born]]
    freed = blocks["freed"] < history.moments
    if _keeps_first_stack(history, found, freed & born):
        before = freed & ~born & (blocks["freed"] >= 0)
        found[before] = stacks[blocks["freed"][before]]
    for row in np.flatnonzero(~freed & ~born).tolist():
        found[row] = held.get(int(blocks["address"][row]), 0)
    return found


def _backward_places(blocks: Mapping[str, Column], spans: tuple[Span, ...], stack: Column) -> Column:
    """Autograd's threads have no Python of their own: theirs is the line that called for the backward."""
    firsts = np.array([span.first for span in spans])
    calls = np.array([span.stack if span.phase == "backward" else 0 for span in spans])
    span = np.clip(np.searchsorted(firsts, blocks["born"], "right") - 1, 0, None)
    found: Column = np.where((stack == 0) & (blocks["born"] >= 0), calls[span], stack)
    return found


def _keeps_first_stack(history: History, asked: Column, rows: Column) -> bool:
    """Whether the events that free blocks have the stack that asked for them (``context="alloc"``)."""
    freeing = history.stacks[history.found.blocks["freed"][rows]]
    return bool(len(freeing) and np.mean(freeing == asked[rows]) > 0.95)


def _metadata(history: History) -> Iterator[tuple[int, Metadata]]:
    """What the program attached to blocks, when it asked for them or later."""
    device = history.device
    if not device.notes:
        return
    action = device.events.action
    moment_of = np.cumsum(action <= SEGMENT_UNMAP) - 1
    blocks = history.found.blocks
    row_of = dict(zip(blocks["born"].tolist(), range(len(blocks["born"])), strict=True))
    known: dict[str, Metadata] = {}
    for index, text in device.notes.items():
        row = None
        if action[index] == ALLOC:
            row = row_of.get(int(moment_of[index]))
        elif action[index] == ANNOTATE:
            row = _live(blocks, int(moment_of[index]), int(device.events.address[index]))
        if text not in known:
            known[text] = metadata_of(text)
        if row is not None:
            yield row, known[text]


def _live(blocks: Mapping[str, Column], moment: int, address: int) -> int | None:
    rows = np.flatnonzero(
        (blocks["address"] == address) & (blocks["born"] <= moment) & (blocks["freed"] > moment)
    )
    return int(rows[-1]) if len(rows) else None


# -- the trace ------------------------------------------------------------------------------------
def _trace(
    history: History, blocks: dict[str, Column], spans: tuple[Span, ...], tables: Tables, dump: Dump
) -> Trace:
    times = (
        np.maximum.accumulate(history.events.time_us)
        if history.recorded
        else np.zeros(history.moments, np.int64)
    )
    return Trace(
        pid=0,
        device=history.device.number,
        moments=history.moments,
        times_us=times,
        blocks=Blocks(
            **{name: np.ascontiguousarray(blocks[name], kind) for name, kind in BLOCK_TYPES.items()}
        ),
        segments=_segments(history),
        spans=spans,
        tables=tables,
        streams=tuple(dump.streams),
        pools=tuple(dump.pools),
        settings=dump.settings,
        whole=history.recorded and not history.start.held,
        notes=notes_of(history, dump),
    )


def _segments(history: History) -> Segments:
    """Whether one is of the small pool, the snapshot itself tells of those that are there at the end."""
    segments = history.found.segments
    small = segments.small.copy()
    for row in np.flatnonzero(segments.freed == history.moments).tolist():
        small[row] = history.device.small.get(int(segments.address[row]), bool(small[row]))
    return replace(segments, small=small)
