"""From a journal to its report; a pure function of the two."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from vramscope.run import ending, peaks
from vramscope.run.journal import Entry, Journal, integer, text
from vramscope.run.report import (
    Assumed,
    CardFigures,
    Figure,
    OutOfMemory,
    Outside,
    Report,
    Unsimulated,
    Versions,
    Waiting,
)


class CardLike(Protocol):
    """What a report takes from a card of the catalogue."""

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def memory_bytes(self) -> int: ...  # noqa: D102
    @property
    def capability(self) -> tuple[int, int]: ...  # noqa: D102
    @property
    def sms(self) -> int: ...  # noqa: D102


def build_report(
    journal: Journal,
    card: CardLike,
    *,
    program: Sequence[str],
    gpus: int,
    capacity_bytes: int | None,
    outside: Outside,
    status: int,
    machine_peaks: Sequence[int] | None = None,
    vramscope: str | None = None,
    timed: bool = False,
) -> Report:
    """The report of one run.

    `capacity_bytes` is the virtual card's memory, None if it was unlimited: then the need is held against
    the memory that the real card has.  `status` is the program's, negative for a signal.
    `timed`: steps have a duration, as on a real card they do.
    `machine_peaks` are, per card, the most bytes that all processes together held."""
    samples = peaks.samples_of(journal)
    lead = peaks.leading(samples)
    lead_pid = lead[0].pid if lead else None
    seconds = step_seconds(journal, lead_pid) if timed else {}
    steps = peaks.steps_of(lead, peaks.complete_steps(journal, lead_pid), seconds)
    devices = peaks.device_peaks(samples, machine_peaks)
    overall = peaks.peaks_of(devices)
    stopped = ending.stopped_of(journal, status)
    oom = ending.oom_of(journal, stopped)
    memory_bytes = card.memory_bytes if capacity_bytes is None else capacity_bytes
    return Report(
        program=tuple(program),
        card=figures_of(card),
        gpus=gpus,
        capacity_bytes=capacity_bytes,
        verdict=ending.verdict_of(overall.process_total_bytes, memory_bytes, oom, stopped),
        needs_bytes=_needs(overall.process_total_bytes, oom),
        peaks=overall,
        devices=devices,
        highest=peaks.highest_of(samples, devices),
        steps=steps,
        steady_from=peaks.steady_from(steps),
        outside=outside,
        versions=_versions(journal, vramscope),
        stopped=stopped,
        assumed=_assumed(journal),
        uncounted=_figures(journal, "uncounted"),
        modelled=_figures(journal, "modelled"),
        unsimulated=_unsimulated(journal),
        waiting=_waiting(journal),
        oom=oom,
        retries=peaks.retries_of(journal),
        damaged_lines=journal.damaged + journal.torn,
    )


def step_seconds(journal: Journal, pid: int | None) -> dict[int, float]:
    """How long each step of a process took, from the one before; the first has none before it."""
    ends = [
        (number, time_us)
        for entry in journal.of("step")
        if entry["pid"] == pid
        and (number := integer(entry, "step")) is not None
        and (time_us := integer(entry, "time_us")) is not None
    ]
    return {number: (end - begin) / 1e6 for (_, begin), (number, end) in pairwise(ends)}


def figures_of(card: CardLike) -> CardFigures:
    """The figures of a card that a report keeps."""
    major, minor = card.capability
    unverified = tuple(getattr(card, "unverified", ()))
    low = getattr(card, "memory_low_bytes", None)
    return CardFigures(card.id, card.name, card.memory_bytes, (major, minor), card.sms, unverified, low)


def _needs(peak_bytes: int | None, oom: OutOfMemory | None) -> int | None:
    return peak_bytes if oom is None or oom.caught else oom.needs_bytes


def _versions(journal: Journal, vramscope: str | None) -> Versions:
    torch = next(journal.of("torch"), {})
    process = next((e for e in journal.of("process") if e.get("main") is True), {})
    told = {name: text(torch, name) for name in ("torch", "cuda", "cudnn", "allocator")}
    return Versions(**told, python=text(process, "python"), vramscope=vramscope)


def _assumed(journal: Journal) -> tuple[Assumed, ...]:
    """Counts are cumulative within a process, so its last one holds; processes are added."""
    last: dict[tuple[str, str | None], dict[int, Entry]] = {}
    for entry in journal.of("assumed"):
        if (what := text(entry, "what")) is not None:
            last.setdefault((what, text(entry, "where")), {})[entry["pid"]] = entry
    return tuple(_one_assumed(*key, list(entries.values())) for key, entries in last.items())


def _one_assumed(what: str, where: str | None, entries: list[Entry]) -> Assumed:
    counts = [count for entry in entries if (count := integer(entry, "count")) is not None]
    return Assumed(what, where, sum(counts) if counts else None, text(entries[-1], "value"))


def _figures(journal: Journal, kind: str) -> tuple[Figure, ...]:
    """One of each name: the highest bytes that any line tells, and the last note."""
    found: dict[str, Figure] = {}
    for entry in journal.of(kind):
        if (what := text(entry, "what")) is not None:
            before = found.get(what, Figure(what))
            size = peaks.highest((before.bytes, integer(entry, "bytes")))
            found[what] = Figure(what, size, text(entry, "note") or before.note)
    return tuple(found.values())


def _unsimulated(journal: Journal) -> tuple[Unsimulated, ...]:
    calls = (
        Unsimulated(library, symbol, integer(entry, "answer"))
        for entry in journal.of("unsimulated")
        if (library := text(entry, "library")) and (symbol := text(entry, "symbol"))
    )
    return tuple(dict.fromkeys(calls))


def _waiting(journal: Journal) -> tuple[Waiting, ...]:
    found = (Waiting(text(entry, "where"), text(entry, "note")) for entry in journal.of("waiting"))
    return tuple(dict.fromkeys(found))
