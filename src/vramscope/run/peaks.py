"""Peaks from the spans of a journal: of all, per card, per step, and where they were.

A span is a stretch between two phase boundaries of one process; its peaks are those
within it.  Allocated and reserved are taken per process, as torch reports them; the
process total is that of all processes on a card, as nvidia-smi shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vramscope.run.journal import Journal, integer, objects, text
from vramscope.run.report import DevicePeaks, Highest, Peaks, Retry, Step


@dataclass(frozen=True, slots=True)
class Sample:
    """One card in one span of one process."""

    pid: int
    device: int
    step: int | None
    phase: str
    allocated_bytes: int | None
    reserved_bytes: int | None
    total_bytes: int


def samples_of(journal: Journal) -> list[Sample]:
    """Every card in every span; those where the process held nothing at all are left out."""
    return [
        Sample(
            entry["pid"],
            device,
            integer(entry, "step"),
            text(entry, "phase") or "other",
            integer(item, "peak_allocated_bytes"),
            integer(item, "peak_reserved_bytes"),
            total,
        )
        for entry in journal.of("span")
        for item in objects(entry, "devices")
        if (device := integer(item, "device")) is not None and (total := integer(item, "peak_used_bytes"))
    ]


def retries_of(journal: Journal) -> tuple[Retry, ...]:
    """Where the allocator ran into the card's end and gave its cache back."""
    return tuple(
        Retry(device, integer(entry, "step"), text(entry, "phase") or "other", count)
        for entry in journal.of("span")
        for item in objects(entry, "devices")
        if (device := integer(item, "device")) is not None and (count := integer(item, "retries"))
    )


def device_peaks(samples: Sequence[Sample], machine: Sequence[int] | None) -> tuple[DevicePeaks, ...]:
    """The peaks of each card that was used.

    `machine` is, per card, the most that all processes held at one time, as the virtual machine's own books
    have it (they also know of processes that were killed before they wrote a span); None: not known."""
    kept = machine or ()
    devices = {sample.device for sample in samples} | {device for device, size in enumerate(kept) if size}
    return tuple(
        _on_device(device, samples, kept[device] if device < len(kept) else None)
        for device in sorted(devices)
    )


def peaks_of(devices: Sequence[DevicePeaks]) -> Peaks:
    """The highest of all cards, metric by metric."""
    return Peaks(
        highest(each.peaks.allocated_bytes for each in devices),
        highest(each.peaks.reserved_bytes for each in devices),
        highest(each.peaks.process_total_bytes for each in devices),
    )


def leading(samples: Sequence[Sample]) -> list[Sample]:
    """The samples of the process with the highest total, the first of several."""
    if not samples:
        return []
    pid = max(samples, key=lambda sample: sample.total_bytes).pid
    return [sample for sample in samples if sample.pid == pid]


def highest_of(samples: Sequence[Sample], devices: Sequence[DevicePeaks]) -> Highest | None:
    """Where the total of the fullest card first reached its peak, in the process that holds most of it.

    None if it was in a stretch whose process was killed before it wrote it down."""
    if not devices:
        return None
    fullest = max(devices, key=_total)
    here = [sample for sample in samples if sample.device == fullest.device]
    if sum(_totals(here).values()) < _total(fullest):
        return None
    top = max(here, key=lambda sample: sample.total_bytes)
    return Highest(top.phase, top.step, top.device)


def steps_of(samples: Sequence[Sample], complete: set[int], seconds: Mapping[int, float]) -> tuple[Step, ...]:
    """One process's samples, by step; `complete` are the steps that came to their end, `seconds` their times."""
    numbers = sorted({sample.step for sample in samples if sample.step is not None})
    return tuple(
        replace(
            _step(number, [sample for sample in samples if sample.step == number], number in complete),
            seconds=seconds.get(number),
        )
        for number in numbers
    )


def complete_steps(journal: Journal, pid: int | None) -> set[int]:
    """The steps that a process ended; of any process where `pid` is None."""
    numbers = (integer(entry, "step") for entry in journal.of("step") if pid in (None, entry["pid"]))
    return {number for number in numbers if number is not None}


GROWTH = 1.001
"""A peak that is higher by less than a thousandth has not grown: a step may keep a block more or less."""


def steady_from(steps: Iterable[Step]) -> int | None:
    """The first complete step after which neither allocated nor the total grew, if one followed."""
    whole = [step for step in steps if step.complete]
    last_growth, top = 0, (0, 0)
    for index, step in enumerate(whole):
        now = (step.peaks.allocated_bytes or 0, step.peaks.process_total_bytes or 0)
        if now[0] > top[0] * GROWTH or now[1] > top[1] * GROWTH:
            last_growth, top = index, (max(now[0], top[0]), max(now[1], top[1]))
    return whole[last_growth].step if last_growth + 1 < len(whole) else None


def highest(values: Iterable[int | None]) -> int | None:
    """The highest of the known values; None if none is known."""
    return max((value for value in values if value is not None), default=None)


def _on_device(device: int, samples: Sequence[Sample], kept: int | None) -> DevicePeaks:
    here = [sample for sample in samples if sample.device == device]
    totals = _totals(here)
    total = sum(totals.values()) if kept is None else max(kept, *totals.values(), 0)
    return DevicePeaks(device, _peaks(here, total), len(totals) or None)


def _totals(samples: Sequence[Sample]) -> dict[int, int]:
    """Each process's highest total."""
    totals: dict[int, int] = {}
    for sample in samples:
        totals[sample.pid] = max(totals.get(sample.pid, 0), sample.total_bytes)
    return totals


def _total(device: DevicePeaks) -> int:
    return device.peaks.process_total_bytes or 0


def _peaks(samples: Sequence[Sample], total: int) -> Peaks:
    allocated = highest(sample.allocated_bytes for sample in samples)
    return Peaks(allocated, highest(sample.reserved_bytes for sample in samples), total)


def _step(number: int, samples: Sequence[Sample], complete: bool) -> Step:
    peaks = _peaks(samples, max(sample.total_bytes for sample in samples))
    top = max(samples, key=lambda sample: -1 if sample.allocated_bytes is None else sample.allocated_bytes)
    return Step(number, complete, peaks, top.phase)
