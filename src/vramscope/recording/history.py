"""The allocator's own history, taken over into the run's journal piece by piece.

torch writes every event of its caching allocator into a ring (`_record_memory_history`), with the
Python stack and the label of the thread.  It is read at steps' ends, written to the journal as columns
(base64 of little-endian arrays: 45 bytes an event) and cleared, so that a process that is killed has
lost no more than the step it was in."""

from __future__ import annotations

import base64
import bisect
import ctypes
from array import array
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import itemgetter
from types import ModuleType
from typing import Any

from vramscope.recording import journal
from vramscope.recording.garbage import uncollected
from vramscope.recording.labels import Labels
from vramscope.recording.stacks import Stacks
from vramscope.run.actions import ACTIONS, ALLOC, ANNOTATE, OOM, OTHER, SEGMENT_ALLOC, SEGMENT_MAP

MOST_EVENTS = 4_000_000
"""After so many the history ends, and the Run says so: they fill some 200 MB of the journal."""
PATIENCE = 10_000
"""So many events may wait, each in some 9 KB of torch's: reading costs most per event where there are few."""
_NUMBERS = {name: number for number, name in enumerate(ACTIONS)}
_DEFAULT_POOL = (0, 0)
_pool = itemgetter("pool_id")
_label = itemgetter("user_metadata")
_common = itemgetter("action", "addr", "size", "time_us", "stream")
_ASKING = frozenset((ALLOC, SEGMENT_ALLOC, SEGMENT_MAP, OOM))
"""The actions whose stack is kept."""
USES = ("workspace", "communication", "input")
"""The kinds of a use, in the order of vs.h."""


class _Use(ctypes.Structure):
    """struct vs_use of virtual/native/vs.h."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("time_us", ctypes.c_int64),
        ("device", ctypes.c_int32),
        ("kind", ctypes.c_int32),
    )


class History:
    """Starts torch's history, and moves what it holds into the journal."""

    def __init__(self, torch: ModuleType, labels: Labels, stacks: Stacks, core: ctypes.CDLL | None) -> None:
        self._torch, self._labels, self._core = torch, labels, core
        self._record: Callable[..., None] = torch._C._cuda_record_memory_history
        self._snapshot: Callable[..., dict[str, Any]] = torch._C._cuda_memorySnapshot
        self._stacks = stacks
        self._contexts: dict[str, int] = {"": 0}
        """Numbers of labels; those of spans that are over are forgotten, their numbers are not given again."""
        self._next_context = 1
        self._streams: dict[int, int] = {0: 0}
        self._pools: dict[tuple[int, int], int] = {(0, 0): 0}
        self._settings: dict[str, Any] = {}
        self._seen = 0
        self._asked = 0
        self._made_before = 0
        self._shared_from: dict[int, int] | None = None
        """The program records itself: nothing is cleared, and so many entries per device were taken."""
        self.on = False
        self.span = 0
        """The number of the span that is open: those before it are known whole once the history is taken."""

    def start(self) -> None:
        """From here on every event is kept; CUDA has just been started."""
        memory = self._torch.cuda.memory
        try:
            memory._record_memory_history("all", context="alloc", stacks="python", max_entries=1 << 40)
        except (RuntimeError, TypeError) as error:  # another allocator backend, or a torch before 2.1
            journal.write("unrecorded", what="the allocator's history", note=str(error).partition("\n")[0])
            return
        self.on = True
        self._torch._C._cuda_record_memory_history = self._program_records

    @uncollected
    def take(self) -> None:
        """Writes what the history holds, and empties it."""
        if not self.on:
            return
        self._take_uses()
        self._stacks.begin()
        snapshot = self._look()
        self._write_settings(snapshot.get("allocator_settings", {}))
        for device, trace in enumerate(snapshot["device_traces"]):
            if self._shared_from is not None:
                before, self._shared_from[device] = self._shared_from.get(device, 0), len(trace)
                trace = trace[before:]
            if trace:
                self._write(device, trace)
        journal.write("taken", span=self.span)
        self._contexts = {"": 0}
        self._made_before = self._made()
        if self._shared_from is None:
            self._clear()
        if self._seen > MOST_EVENTS:
            self._end()

    def _write_settings(self, settings: dict[str, Any]) -> None:
        """The allocator's settings, which a replay of its decisions needs, where they are new."""
        if settings != self._settings:
            self._settings = settings
            journal.write("settings", settings=settings)

    def _take_uses(self) -> None:
        """What libraries used memory for, as the virtual card's stand-ins noted it; a real card has none."""
        if self._core is None:
            return
        room = (_Use * 4096)()
        found: list[tuple[int, str, int, int, int]] = []
        while count := self._core.vs_take_uses(room, len(room)):
            found += [
                (use.device, USES[use.kind], use.address, use.time_us, use.bytes) for use in room[:count]
            ]
        if found:
            journal.write("uses", uses=found)

    def take_if_much(self) -> None:
        """Takes what waits if it is much; asked for often, looked at rarely."""
        self._asked += 1
        if self._asked % 64 == 0 and self._waiting() > PATIENCE:
            self.take()

    def step_ended(self, step: int) -> None:
        """The first steps' events are taken at once, as most runs have no more of them; then by the many."""
        if step <= 3 or self._waiting() > PATIENCE:
            self.take()

    def _waiting(self) -> int:
        """About as many events as have come since the last reading: an allocation is three of them."""
        if not self.on:
            return 0
        return 3 * (self._made() - self._made_before)

    def _made(self) -> int:
        """How many allocations the current device has seen."""
        stats = self._torch.cuda.memory_stats_as_nested_dict()
        return int(stats.get("allocation", {}).get("all", {}).get("allocated", 0))

    def _look(self) -> dict[str, Any]:
        """A snapshot of torch's; without the compiler, a second's import, in which it would look for frames."""
        torch: Any = self._torch
        lazy = "_inductor" not in vars(
            torch
        )  # torch/csrc/profiler/python/combined_traceback.cpp, py_symbolize
        if lazy:
            torch._inductor = None
        try:
            return self._snapshot(None)  # of all memory pools
        except TypeError:  # torch before 2.9 knows of no others
            return self._snapshot()
        finally:
            if lazy and torch._inductor is None:
                del torch._inductor

    def _clear(self) -> None:
        memory = self._torch.cuda.memory
        self._torch._C._cuda_record_memory_history = self._record
        memory._record_memory_history(
            "all", context="alloc", stacks="python", max_entries=1 << 40, clear_history=True
        )
        self._torch._C._cuda_record_memory_history = self._program_records

    def _end(self) -> None:
        self.on = False
        self._torch._C._cuda_record_memory_history = self._record
        self._torch.cuda.memory._record_memory_history(None)
        journal.write(
            "unrecorded",
            what="the rest of the allocator's history",
            note=f"it ends after {self._seen} events",
        )

    def _program_records(self, enabled: str | None, *args: Any, **kwargs: Any) -> None:
        """The program starts or ends a history of its own: ours is taken over first, and goes on after."""
        self.take()
        self._record(enabled, *args, **kwargs)
        if enabled is None:
            self._shared_from = None
            self._clear()
        else:
            self._shared_from = {}

    # -- one device's events as columns ---------------------------------------------------------
    def _write(self, device: int, trace: Sequence[dict[str, Any]]) -> None:
        self._seen += len(trace)
        names, addresses, sizes, times, streams = _transposed(trace)
        actions = bytes(map(_NUMBERS.get, names, repeat(OTHER)))
        labels = list(map(_label, trace)) if self._labels.native else self._by_time(times)
        stacks, of_entry = array("i", bytes(4 * len(trace))), self._stacks.of_entry
        for place, action in enumerate(actions):
            if action in _ASKING and (frames := trace[place]["frames"]):
                stacks[place] = of_entry(frames)
        if self._labels.native:
            notes = [
                (place, addresses[place], labels[place])
                for place, action in enumerate(actions)
                if action == ANNOTATE
            ]
        else:
            notes = self._annotations(times)
        columns = {
            "action": actions,
            "address": array("Q", addresses).tobytes(),
            "size": array("q", sizes).tobytes(),
            "time": array("q", times).tobytes(),
            "stream": _numbered(self._streams, streams),
            "pool": _numbered(self._pools, _pools_of(trace)),
            "stack": stacks.tobytes(),
            "context": self._context_column(actions, labels),
        }
        journal.write(
            "events",
            device=device,
            count=len(trace),
            streams=list(self._streams),
            pools=list(self._pools),
            annotations=notes,
            **{name: base64.b64encode(data).decode("ascii") for name, data in columns.items()},
        )

    def _context_column(self, actions: bytes, labels: Sequence[str]) -> bytes:
        new = set(labels) - self._contexts.keys()
        told = {}
        for label in sorted(label for label in new if label.count(":") != 1):  # the others are annotations
            self._contexts[label] = self._next_context
            told[self._next_context] = label
            self._next_context += 1
        if told:
            journal.write("contexts", contexts=told)
        return array("i", map(self._contexts.get, labels, repeat(0))).tobytes()

    def _by_time(self, times: Sequence[int]) -> list[str]:
        """For a torch that keeps no labels: the one that was set last before each event."""
        log = self._labels.log
        begins = [begin for begin, _ in log]
        found = [log[place - 1][1] if (place := bisect.bisect_right(begins, time)) else "" for time in times]
        del log[:-1]
        return found

    def _annotations(self, times: Sequence[int]) -> list[tuple[int, int, str]]:
        """For a torch that keeps none: after which event each was made."""
        found = [
            (max(bisect.bisect_right(times, time) - 1, 0), address, label)
            for time, address, label in self._labels.annotations
        ]
        self._labels.annotations.clear()
        return found


def _transposed(trace: Sequence[dict[str, Any]]) -> tuple[tuple[Any, ...], ...]:
    """What every event has, a column each; a failed request has no address."""
    try:
        return tuple(zip(*map(_common, trace), strict=True))
    except KeyError:
        return tuple(zip(*(_common({"addr": 0, "size": 0, **entry}) for entry in trace), strict=True))


def _pools_of(trace: Sequence[dict[str, Any]]) -> list[Any]:
    """The pool of every event; a torch before 2.9 does not tell it."""
    try:
        return list(map(_pool, trace))
    except KeyError:
        return [each.get("pool_id", _DEFAULT_POOL) for each in trace]


def _numbered(known: dict[Any, int], values: Sequence[Any]) -> bytes:
    new = set(values) - known.keys()
    for value in new:
        known[value] = len(known)
    if len(known) == 1:
        return bytes(4 * len(values))
    return array("i", map(known.__getitem__, values)).tobytes()
