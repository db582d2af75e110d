"""From a journal to its traces: the allocators' histories as the processes wrote them, made one value each.

Nothing here trusts the journal: a process may have been killed in the middle, and a program may write
into it.  What does not fit is left out, and the trace's notes say so."""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vramscope.run.actions import ALLOC, SEGMENT_UNMAP
from vramscope.run.categorize import Origins, categories_of
from vramscope.run.curves import allocated_curve
from vramscope.run.events import EVENT_TYPES, Events
from vramscope.run.journal import Entry, Journal, integer, objects, text
from vramscope.run.owners import Note, Use, claims_of
from vramscope.run.replay import replay
from vramscope.run.told import Told, told_by
from vramscope.run.trace import BACKWARD, BLOCK_TYPES, Blocks, Column, Span, Trace

RECORDED = (
    "events",
    "contexts",
    "frame",
    "stack",
    "name",
    "module",
    "optimizer",
    "settings",
    "uses",
    "taken",
)
"""The kinds of entry that traces are made from; a Run's journal is without them."""
_COLUMNS = {"action": "|u1", "address": "<u8", "size": "<i8", "time": "<i8", "stream": "<i4", "pool": "<i4"}
_LABELS = {"stack": "<i4", "context": "<i4"}


@dataclass(slots=True)
class _Chunk:
    """The events of one reading on one card."""

    columns: dict[str, Column]
    annotations: list[tuple[int, int, str]]
    streams: list[Any]
    pools: list[Any]


@dataclass(slots=True)
class _Process:
    """What one process wrote."""

    pid: int
    chunks: dict[int, list[_Chunk]] = field(default_factory=lambda: defaultdict(list))
    spans: list[Entry] = field(default_factory=list)
    uses: list[Entry] = field(default_factory=list)
    taken: int | None = None
    """The span that was open when the history was last taken."""
    told: list[Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def split(journal: Journal) -> tuple[Journal, Journal]:
    """The journal without what traces are made from, and that alone (with the spans, which both need)."""
    short = tuple(entry for entry in journal.entries if entry["kind"] not in RECORDED)
    long = tuple(e for e in journal.entries if e["kind"] in (*RECORDED, "span", "unrecorded"))
    return replace(journal, entries=short), replace(journal, entries=long)


def traces_of(journal: Journal) -> tuple[Trace, ...]:
    """The histories of all allocators, the one with the highest allocated peak first."""
    processes: dict[int, _Process] = {}
    for entry in journal.entries:
        _sort(processes.setdefault(entry["pid"], _Process(entry["pid"])), entry)
    traces = [trace for process in processes.values() for trace in _traces(process)]
    return tuple(sorted(traces, key=lambda trace: -int(allocated_curve(trace).max(initial=0))))


def _sort(process: _Process, entry: Entry) -> None:
    kind = entry["kind"]
    if kind == "events":
        chunk = _chunk(entry)
        if chunk is None:
            process.notes.append("a part of the history could not be read")
        else:
            process.chunks[integer(entry, "device") or 0].append(chunk)
    elif kind == "span":
        process.spans.append(entry)
    elif kind == "uses":
        process.uses.append(entry)
    elif kind == "taken":
        process.taken = integer(entry, "span")
    elif kind == "unrecorded":
        process.notes.append(
            f"not recorded: {text(entry, 'what')} ({text(entry, 'note') or 'no reason told'})"
        )
    else:
        process.told.append(entry)


def _chunk(entry: Entry) -> _Chunk | None:
    count = integer(entry, "count")
    try:
        columns = {
            name: np.frombuffer(base64.b64decode(entry[name], validate=True), kind)
            for name, kind in (_COLUMNS | _LABELS).items()
        }
        notes = [(int(at), int(address), str(label)) for at, address, label in entry.get("annotations", ())]
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None
    if {len(column) for column in columns.values()} != {count}:
        return None
    return _Chunk(columns, notes, list(entry.get("streams", [0])), list(entry.get("pools", [[0, 0]])))


def _traces(process: _Process) -> Iterable[Trace]:
    told = told_by(process.told)
    for device, chunks in sorted(process.chunks.items()):
        yield _trace(process, device, chunks, told)


def _trace(process: _Process, device: int, chunks: Sequence[_Chunk], told: Told) -> Trace:
    joined = {name: np.concatenate([chunk.columns[name] for chunk in chunks]) for name in chunks[0].columns}
    kept = joined["action"] <= SEGMENT_UNMAP  # the rest changes nothing: notes, snapshots, failed requests
    moment_of = np.cumsum(kept) - 1
    events = _events({name: joined[name][kept] for name in _COLUMNS})
    context = told.contexts[np.clip(joined["context"], 0, len(told.contexts) - 1)]
    span = np.maximum.accumulate(context[:, 0])[kept]
    found = replay(events, told.settings)
    asked = np.flatnonzero(events.action == ALLOC)
    spans, numbers = _spans(process, device, span, told)
    born_span = np.clip(np.searchsorted(numbers, span[asked], "right") - 1, 0, len(spans) - 1)
    notes = _notes(chunks, moment_of)
    origins = Origins(
        module=context[kept, 1][asked],
        flags=context[kept, 2][asked].astype(np.uint8),
        stack=_stacks(joined["stack"][kept][asked], context[kept, 2][asked], born_span, spans),
        casts=told.casts,
    )
    times = np.maximum.accumulate(events.time_us) if len(events) else events.time_us
    claims = claims_of(found.blocks, notes, _uses(process.uses, device), times, told)
    category, module, name = categories_of(found.blocks, len(events), spans, origins, claims, told.tables)
    blocks = {
        **found.blocks,
        "category": category,
        "module": module,
        "name": name,
        "stack": origins.stack,
        "flags": origins.flags,
    }
    made = Trace(
        pid=process.pid,
        device=device,
        moments=len(events),
        times_us=times,
        blocks=Blocks(**{key: np.ascontiguousarray(blocks[key], kind) for key, kind in BLOCK_TYPES.items()}),
        segments=found.segments,
        spans=spans,
        tables=told.tables,
        streams=tuple(int(each) for each in chunks[-1].streams),
        pools=tuple((int(a), int(b)) for a, b in chunks[-1].pools),
        settings=dict(told.settings),
        notes=(*process.notes, *found.faults),
    )
    of_other_threads = (context[kept, 2] & BACKWARD > 0) | (context[kept, 0] < 0)
    return replace(made, spans=_settled(made, of_other_threads))


def _events(columns: Mapping[str, Column]) -> Events:
    given = {**columns, "time_us": columns["time"]}
    return Events(**{name: given[name].astype(kind) for name, kind in EVENT_TYPES.items()})


def _stacks(stack: Column, flags: Column, span: Column, spans: Sequence[Span]) -> Column:
    """Autograd's threads have no Python of their own: theirs is the line that called for the backward."""
    place = np.array([each.stack for each in spans], np.int32)[span]
    found: Column = np.where((stack == 0) & (flags & BACKWARD > 0), place, stack)
    return found


def _spans(process: _Process, device: int, span_of: Column, told: Told) -> tuple[tuple[Span, ...], Column]:
    """The spans, and their numbers in the process; each begins with the first event that carries its number.

    Those that ended after the history was last taken are left out: their events died with the process."""
    entries = [
        e for e in process.spans if process.taken is None or (integer(e, "number") or 0) < process.taken
    ]
    if len(entries) < len(process.spans):
        process.notes.append("the process was killed: what came after its last step is not in the history")
    known = {number: entry for entry in entries if (number := integer(entry, "number")) is not None}
    phases = {text(entry, "phase") for entry in entries}
    numbers = sorted({*known, *map(int, np.unique(span_of[span_of >= 0])), 0})
    first = np.searchsorted(span_of, numbers, "left")
    rename = {} if "backward" in phases else {"evaluation": "forward"}  # a program that only infers
    spans = tuple(
        _span(known.get(number, {}), int(start), device, rename, told)
        for number, start in zip(numbers, first, strict=True)
    )
    return (replace(spans[0], first=0), *spans[1:]), np.array(numbers)


def _settled(trace: Trace, late: Column) -> tuple[Span, ...]:
    """The spans, their ends moved before frees that came later.

    Autograd's thread drops a graph when the backward has returned already, under the label that it still
    has, or none (`late`): such an event before the next span's first may be on either side of the boundary, and the
    counters that were read there tell which."""
    curve, spans = allocated_curve(trace), list(trace.spans)
    for number, span in enumerate(spans[:-1]):
        at = spans[number + 1].first
        while at > max(span.first, 1) and curve[at - 1] != span.allocated_bytes and late[at - 1]:
            at -= 1
        if span.allocated_bytes is not None and at > 0 and curve[at - 1] == span.allocated_bytes:
            spans[number + 1] = replace(spans[number + 1], first=at)
    return tuple(spans)


def _span(entry: Entry, first: int, device: int, rename: Mapping[str, str], told: Told) -> Span:
    phase = text(entry, "phase") or "other"
    here = next((each for each in objects(entry, "devices") if each.get("device") == device), {})
    reserved, used = integer(here, "reserved_bytes"), integer(here, "used_bytes")
    stack = integer(entry, "stack") or 0
    return Span(
        first=first,
        phase=rename.get(phase, phase),
        step=integer(entry, "step"),
        mark=text(entry, "mark"),
        stack=stack if stack < len(told.tables.stacks) else 0,
        time_us=integer(entry, "time_us"),
        allocated_bytes=integer(here, "allocated_bytes"),
        reserved_bytes=reserved,
        peak_allocated_bytes=integer(here, "peak_allocated_bytes"),
        peak_reserved_bytes=integer(here, "peak_reserved_bytes"),
        outside_bytes=None if used is None or reserved is None or used < reserved else used - reserved,
    )


def _notes(chunks: Sequence[_Chunk], moment_of: Column) -> list[Note]:
    found, before = [], 0
    for chunk in chunks:
        for at, address, label in chunk.annotations:
            place = before + at
            if place < len(moment_of):
                found.append(Note(int(moment_of[place]), address, label))
        before += len(chunk.columns["action"])
    return found


def _uses(entries: Sequence[Entry], device: int) -> list[Use]:
    found = []
    for entry in entries:
        for item in entry.get("uses", ()):
            if isinstance(item, list) and len(item) == 5 and item[0] == device:
                found.append(Use(str(item[1]), *map(int, item[2:])))
    return found
