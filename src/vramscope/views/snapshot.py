"""A Run as a memory snapshot of torch's, for the tools that read those.

The form is that of ``torch.cuda.memory._snapshot`` in torch 2.14 (described in torch/cuda/memory.py), in
pickle's protocol 4, which is the one that the memory_viz page reads.  What an exported block was for
stands in the `user_metadata` of its allocation."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vramscope.analysis.lookup import span_numbers
from vramscope.run.categories import CATEGORIES
from vramscope.run.imported.metadata import Metadata, metadata_text
from vramscope.run.run import Run
from vramscope.run.trace import Column, Trace
from vramscope.run.unpickle import uncollected

PROTOCOL = 4
Entry = dict[str, Any]

_SEGMENT_ALLOC, _ALLOC, _FREE_REQUESTED, _FREE_COMPLETED, _SEGMENT_FREE = range(5)
"""The order of what happened at one moment."""
_ACTIONS = {_ALLOC: "alloc", _FREE_REQUESTED: "free_requested", _FREE_COMPLETED: "free_completed"}
_SEGMENT_ACTIONS = {
    _SEGMENT_ALLOC: ("segment_alloc", "segment_map"),
    _SEGMENT_FREE: ("segment_free", "segment_unmap"),
}
"""Of a segment of cudaMalloc, and of a range that is mapped."""
_SegmentEvent = tuple[int, int, tuple[str, Entry]]
"""Its moment, its kind, its action and what else there is of it."""


def snapshot_pickle(run: Run) -> bytes:
    """The file's bytes."""
    with uncollected():
        return pickle.dumps(snapshot_of(run), PROTOCOL)


def snapshot_of(run: Run) -> dict[str, Any]:
    """The snapshot as plain data."""
    devices = _devices(run.traces)
    traces: list[list[Entry]] = [[] for _ in range(max(devices, default=-1) + 1)]
    segments: list[Entry] = []
    for device, trace in zip(devices, run.traces, strict=True):
        frames = _Frames(trace)
        traces[device] = _events(trace, frames)
        segments += _segments(trace, device, frames)
    return {
        "segments": sorted(segments, key=lambda each: (each["device"], each["address"])),
        "device_traces": traces,
        "allocator_settings": dict(run.traces[0].settings) if run.traces else {},
        "external_annotations": [],
    }


def _devices(traces: Sequence[Trace]) -> list[int]:
    """Each trace's place; a snapshot is of one process, so those of several on one card get places of their own."""
    devices = [trace.device for trace in traces]
    return devices if len(set(devices)) == len(devices) else list(range(len(devices)))


class _Frames:
    """Stacks as lists of frames, each made once: a pickle then holds it once."""

    def __init__(self, trace: Trace) -> None:
        frames = [
            {"name": frame.function, "filename": frame.file, "line": frame.line}
            for frame in trace.tables.frames
        ]
        self._stacks = [[frames[number] for number in stack] for stack in trace.tables.stacks]

    def of(self, stack: int) -> list[dict[str, Any]]:
        """The frames of a stack, innermost first."""
        return self._stacks[stack]


# -- events -----------------------------------------------------------------------------------------
def _events(trace: Trace, frames: _Frames) -> list[Entry]:
    """All events in order; each is what its block or segment has in common, with its action and its time."""
    blocks, segments = _block_entries(trace, frames), list(_segment_entries(trace))
    times = trace.times_us.tolist()
    found = []
    for moment, kind, row in zip(*_in_order(trace, segments), strict=True):
        action, told = (
            segments[row][2] if kind in (_SEGMENT_ALLOC, _SEGMENT_FREE) else (_ACTIONS[kind], blocks[row])
        )
        found.append({"action": action, **told, "time_us": times[moment]})
    return found


def _in_order(trace: Trace, segments: list[_SegmentEvent]) -> tuple[list[int], list[int], list[int]]:
    """What happened, by moment: the kinds of events, and the rows that they are of."""
    parts = [
        np.array([(moment, kind, row) for row, (moment, kind, _) in enumerate(segments)], np.int64).reshape(
            -1, 3
        )
    ]
    for kind, column in zip(
        _ACTIONS, (trace.blocks.born, trace.blocks.freed, trace.blocks.returned), strict=True
    ):
        rows = np.flatnonzero((column >= 0) & (column < trace.moments))
        parts.append(np.stack([column[rows], np.full(len(rows), kind), rows], axis=1))
    moments, kinds, rows = np.concatenate(parts).T
    order = np.lexsort((rows, kinds, moments))
    return moments[order].tolist(), kinds[order].tolist(), rows[order].tolist()


def _block_entries(trace: Trace, frames: _Frames) -> list[Entry]:
    """Per block, what its events have in common."""
    blocks = trace.blocks
    notes = _notes(trace)
    columns = (blocks.address, blocks.requested_bytes, blocks.stream, blocks.segment, blocks.stack)
    pools = trace.segments.pool.tolist()
    return [
        {
            "addr": address,
            "size": size,
            "stream": trace.streams[stream],
            "compile_context": "N/A",
            "user_metadata": note,
            "pool_id": trace.pools[pools[segment]],
            "frames": frames.of(stack),
        }
        for address, size, stream, segment, stack, note in zip(
            *(column.tolist() for column in columns), notes, strict=True
        )
    ]


def _notes(trace: Trace) -> list[str]:
    """Per block what is known of it as text, each text made once."""
    blocks, tables = trace.blocks, trace.tables
    columns = (blocks.category, blocks.module, blocks.name, span_numbers(trace, blocks.born))
    known: dict[tuple[int, ...], str] = {}
    found = []
    for key in zip(*(column.tolist() for column in columns), strict=True):
        if key not in known:
            category, module, name, span = key
            phase = (trace.spans[span].phase, trace.spans[span].step) if span >= 0 else ("", None)
            told = Metadata(CATEGORIES[category], tables.modules[module].path, tables.names[name], *phase)
            known[key] = metadata_text(told)
        found.append(known[key])
    return found


def _segment_entries(trace: Trace) -> Iterator[_SegmentEvent]:
    """The events of segments; pieces that were mapped or unmapped together are one again."""
    rows = _segment_rows(trace)
    for kind, column in ((_SEGMENT_ALLOC, trace.segments.born), (_SEGMENT_FREE, trace.segments.freed)):
        by_moment: dict[int, list[Entry]] = {}
        for row, moment in zip(rows, column.tolist(), strict=True):
            if 0 <= moment < trace.moments:
                by_moment.setdefault(moment, []).append(row)
        for moment, together in by_moment.items():
            for told in _joined(together):
                yield moment, kind, (_SEGMENT_ACTIONS[kind][told["is_expandable"]], _segment_entry(told))


def _segment_entry(told: Entry) -> Entry:
    return {
        "addr": told["address"],
        "size": told["total_size"],
        "stream": told["stream"],
        "compile_context": "N/A",
        "user_metadata": "",
        "pool_id": told["segment_pool_id"],
        "frames": [],
    }


# -- the state at the end ---------------------------------------------------------------------------
def _segments(trace: Trace, device: int, frames: _Frames) -> Iterator[Entry]:
    """What the allocator holds at the end, with all its blocks, the free ones too."""
    rows = _segment_rows(trace)
    there: list[int] = np.flatnonzero(trace.segments.freed >= trace.moments).tolist()
    live = np.flatnonzero(trace.blocks.returned >= trace.moments)
    live = live[np.argsort(trace.blocks.address[live], kind="stable")]
    addresses = trace.blocks.address[live]
    for told in _joined([rows[row] for row in there]):
        low, high = np.searchsorted(addresses, [told["address"], told["address"] + told["total_size"]])
        blocks = list(_filled(told, _held(trace, live[low:high], frames)))
        active = [block for block in blocks if block["state"] != "inactive"]
        allocated = [block for block in active if block["state"] == "active_allocated"]
        yield {
            "device": device,
            **told,
            "allocated_size": sum(block["size"] for block in allocated),
            "active_size": sum(block["size"] for block in active),
            "requested_size": sum(block["requested_size"] for block in active),
            "frames": [],
            "blocks": blocks,
        }


def _segment_rows(trace: Trace) -> list[Entry]:
    segments = trace.segments
    columns = (segments.address, segments.size_bytes, segments.stream, segments.pool, segments.small)
    return [
        {
            "address": address,
            "total_size": size,
            "stream": trace.streams[stream],
            "segment_type": "small" if small else "large",
            "segment_pool_id": trace.pools[pool],
            "is_expandable": expandable,
        }
        for address, size, stream, pool, small, expandable in zip(
            *(column.tolist() for column in (*columns, segments.expandable)), strict=True
        )
    ]


def _joined(rows: list[Entry]) -> list[Entry]:
    """In order of address, with mapped pieces that touch as one, as torch has them."""
    found: list[Entry] = []
    for row in sorted(rows, key=lambda each: each["address"]):
        last = found[-1] if found else None
        if (
            last is not None
            and last["is_expandable"]
            and last["address"] + last["total_size"] == row["address"]
            and all(last[key] == row[key] for key in row if key not in ("address", "total_size"))
        ):
            last["total_size"] += row["total_size"]
        else:
            found.append(dict(row))
    return found


def _held(trace: Trace, rows: Column, frames: _Frames) -> Iterator[Entry]:
    blocks = trace.blocks
    columns = (blocks.address, blocks.size_bytes, blocks.requested_bytes, blocks.freed, blocks.stack)
    for address, size, requested, freed, stack in zip(*(c[rows].tolist() for c in columns), strict=True):
        yield {
            "address": address,
            "size": size,
            "requested_size": requested,
            "state": "active_allocated" if freed >= trace.moments else "active_pending_free",
            "frames": frames.of(stack),
        }


def _filled(segment: Entry, blocks: Iterator[Entry]) -> Iterator[Entry]:
    """The blocks with the free ones between them; of blocks on top of each other only the first."""
    at, end = segment["address"], segment["address"] + segment["total_size"]
    for block in blocks:
        if block["address"] < at or block["address"] + block["size"] > end:
            continue
        if block["address"] > at:
            yield _free(at, block["address"])
        yield block
        at = block["address"] + block["size"]
    if at < end:
        yield _free(at, end)


def _free(start: int, end: int) -> Entry:
    return {"address": start, "size": end - start, "requested_size": 0, "state": "inactive", "frames": []}
