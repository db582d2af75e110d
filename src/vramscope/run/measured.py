"""A measured run: what NVML told of the process, joined to what the recorder wrote in it.

The recorder knows the allocator's memory at every moment, NVML the whole process's at some.  The
difference at those moments is what the process holds outside of the allocator (the CUDA context,
loaded kernels, libraries' own memory); with it every span has a process total."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vramscope.run.curves import reserved_curve
from vramscope.run.journal import Entry, Journal, integer, objects, text
from vramscope.run.report import Outside
from vramscope.run.trace import Trace


@dataclass(frozen=True, slots=True)
class Sample:
    """One look of NVML's, where it differed from the one before."""

    time_us: int
    card: int
    """NVML's index."""
    pid: int | None
    """A process of the program's; None: the whole card."""
    used_bytes: int
    others_bytes: int = 0
    """Of a whole card: what processes that are not the program's held."""


def entries_of(samples: Iterable[Sample]) -> list[dict[str, Any]]:
    """The samples as entries of a journal."""
    return [
        {
            "pid": sample.pid or 0,
            "kind": "nvml",
            "card": sample.card,
            "time_us": sample.time_us,
            "used_bytes": sample.used_bytes,
            "others_bytes": sample.others_bytes,
        }
        for sample in samples
    ]


@dataclass(frozen=True, slots=True)
class Totals:
    """What NVML's samples come to."""

    outside: Outside
    peaks: dict[int, int]
    """Per CUDA device, the most that the program's processes held at one look."""
    others_bytes: int
    """The most that other processes held on one card meanwhile."""


def totals_of(
    samples: Sequence[Sample], traces: Sequence[Trace], cards: Mapping[int, int], looks: int
) -> Totals:
    """The outside and the peaks; `cards` maps NVML's cards to the program's CUDA devices.

    Where NVML tells nothing of processes (a container that does not see the host's), what the card held
    before the program came is taken off what it holds altogether, and the report says so."""
    told = [sample for sample in samples if sample.pid is not None and sample.card in cards]
    how = f"measured (NVML, {looks} looks)"
    if not told:
        told, how = _by_card(samples, traces, cards), f"measured (NVML, whole card, {looks} looks)"
    gaps = [gap for sample in told for gap in _gaps(sample, traces, cards)]
    outside = _outside(gaps, how)
    others = max((sample.others_bytes for sample in samples if sample.pid is None), default=0)
    return Totals(outside, _peaks(told, cards), others)


def with_totals(journal: Journal, outside_bytes: int) -> Journal:
    """The journal, each span of which also tells what the process held in all."""
    entries = tuple(
        _with_total(entry, outside_bytes) if entry["kind"] == "span" else entry for entry in journal.entries
    )
    return replace(journal, entries=entries)


def devices_of(journal: Journal) -> list[Entry]:
    """What the processes told of their CUDA devices, each device once."""
    found = {integer(entry, "device"): entry for entry in journal.of("device")}
    return [found[number] for number in sorted(number for number in found if number is not None)]


def device_cards(journal: Journal, uuids: Mapping[str, int]) -> dict[int, int]:
    """NVML's cards to CUDA devices, by UUID; by number for a torch that does not tell it."""
    found = {}
    for entry in devices_of(journal):
        device = integer(entry, "device") or 0
        found[uuids.get((text(entry, "uuid") or "").removeprefix("GPU-"), device)] = device
    return found


def _by_card(samples: Sequence[Sample], traces: Sequence[Trace], cards: Mapping[int, int]) -> list[Sample]:
    pids = {cards_device: trace.pid for trace in traces for cards_device in (trace.device,)}
    before: dict[int, int] = {}
    found = []
    for sample in samples:
        if sample.pid is None and sample.card in cards:
            base = before.setdefault(sample.card, sample.used_bytes)
            pid = pids.get(cards[sample.card])
            if pid is not None and sample.used_bytes > base:
                found.append(Sample(sample.time_us, sample.card, pid, sample.used_bytes - base))
    return found


def _gaps(sample: Sample, traces: Sequence[Trace], cards: Mapping[int, int]) -> Iterable[int]:
    """What the process held beside its reserved memory, where the look fell into its history."""
    for trace in traces:
        if trace.pid == sample.pid and trace.device == cards[sample.card] and trace.moments:
            place = int(np.searchsorted(trace.times_us, sample.time_us, "right")) - 1
            if place >= 0:
                yield sample.used_bytes - int(reserved_curve(trace)[place])


def _outside(gaps: Sequence[int], how: str) -> Outside:
    """The median: a look may fall between the card's own change and the event that tells of it."""
    known = sorted(gap for gap in gaps if gap > 0)
    if not known:
        return Outside(0, 0, 0, "not measured: NVML told nothing of this process")
    return Outside(known[len(known) // 2], known[0], known[-1], how)


def _peaks(told: Sequence[Sample], cards: Mapping[int, int]) -> dict[int, int]:
    """Of all processes on a card together, at each look."""
    now: dict[tuple[int, int | None], int] = {}
    peaks: dict[int, int] = {}
    for sample in sorted(told, key=lambda each: each.time_us):
        now[sample.card, sample.pid] = sample.used_bytes
        total = sum(used for (card, _), used in now.items() if card == sample.card)
        device = cards[sample.card]
        peaks[device] = max(peaks.get(device, 0), total)
    return peaks


def _with_total(entry: Entry, outside_bytes: int) -> Entry:
    devices = [
        {
            **item,
            "used_bytes": (integer(item, "reserved_bytes") or 0) + outside_bytes,
            "peak_used_bytes": (integer(item, "peak_reserved_bytes") or 0) + outside_bytes,
        }
        for item in objects(entry, "devices")
    ]
    return {**entry, "devices": devices}
