"""The sentences of a report: pure functions from Report to text, free of layout and colour."""

from __future__ import annotations

from vramscope.planning.last_words import signal_name
from vramscope.run.report import (
    DOES_NOT_FIT,
    FITS,
    Assumed,
    Figure,
    OutOfMemory,
    Report,
    Stopped,
    Unsimulated,
)
from vramscope.units import GIB, format_bytes, format_gib, format_mib

UNKNOWN = "unknown"


def verdict(report: Report) -> str:
    """The first line: whether it fits, on which card, by how much, and where the peak is."""
    name = card_name(report)
    if report.verdict == FITS:
        return f"fits {name}: {_peak(report)}, {format_gib(_free(report))} GiB free{_highest(report)}"
    if report.verdict == DOES_NOT_FIT:
        return f"does not fit {name}: {_need(report)}"
    return f"unknown whether it fits {name}: {_why_unknown(report)}"


def card_name(report: Report) -> str:
    """The card's name, with the number of cards if there are several."""
    return report.card.name if report.gpus == 1 else f"{report.gpus} × {report.card.name}"


def memory_bytes(report: Report) -> int:
    """What the need is held against: the virtual card's memory, or the real one's if that was unlimited."""
    return report.card.memory_bytes if report.capacity_bytes is None else report.capacity_bytes


def unit(report: Report) -> str:
    """The unit of the table's figures: MiB for a program that stays below 1 GiB in all."""
    return "MiB" if (report.peaks.process_total_bytes or GIB) < GIB else "GiB"


def scaled(size: int | None, report: Report) -> str:
    """A figure of the table, without its unit."""
    if size is None:
        return UNKNOWN
    return format_mib(size) if unit(report) == "MiB" else format_gib(size)


def gib(size: int | None) -> str:
    """A size for columns; what is not known is said."""
    return UNKNOWN if size is None else format_gib(size)


def size_text(size: int | None) -> str:
    """A size with its unit; what is not known is said."""
    return UNKNOWN if size is None else format_bytes(size)


def stopped(how: Stopped) -> str:
    """How the program ended."""
    match how.how:
        case "steps":
            return f"stopped after {count(how.steps, 'step')}"
        case "finished":
            ran = f"ran to its end, {count(how.steps, 'step')}" if how.steps else "ran to its end"
            return ran if how.status == 0 else f"{ran}, exit status {how.status}"
        case "exception":
            at = f" at {how.where}" if how.where else ""
            return f"crashed{at}, exit status {how.status}"
        case "oom":
            return "out of memory"
        case "interrupted":
            return "interrupted: partial"
        case "signal":
            return f"killed by {signal_name(-how.status)}: partial"
    return f"left without an end (os._exit), exit status {how.status}: partial"


def steadiness(report: Report) -> str | None:
    """Whether the peak had stopped growing; None where there were no steps to tell by."""
    whole = [step for step in report.steps if step.complete]
    if not whole or report.stopped.how == "oom":
        return None
    if report.steady_from is not None:
        return f"steady from step {report.steady_from} on"
    if len(whole) == 1:
        return "one step only: whether a second needs more is unknown"
    return f"not steady: the peak still grew in step {whole[-1].step}"


def pace(report: Report) -> str | None:
    """How long a step takes, the middle one of those that were timed; None where nothing was computed."""
    known = sorted(step.seconds for step in report.steps if step.complete and step.seconds is not None)
    return f"{known[len(known) // 2]:.3g} s a step" if known else None


def cautions(report: Report) -> list[str]:
    """What a reader must know before trusting the verdict."""
    found = [
        _close(report),
        _partial(report),
        _caught(report),
        _cached(report),
        _shared(report),
        _retried(report),
    ]
    if report.damaged_lines:
        found.append(f"{count(report.damaged_lines, 'line')} of the journal could not be read")
    return [sentence for sentence in found if sentence]


def asked(oom: OutOfMemory) -> str:
    """What was asked for, and by whom."""
    parts = [size_text(oom.requested_bytes), f"on cuda:{oom.device}", in_phase(oom.phase, oom.step)]
    if oom.where:
        parts.append(f"at {oom.where}")
    return " ".join(parts) + (f": {oom.line.strip()}" if oom.line else "")


def held(oom: OutOfMemory) -> str:
    """What was live when it was asked for."""
    return (
        f"allocated {gib(oom.allocated_bytes)}, reserved {gib(oom.reserved_bytes)}, "
        f"process total {gib(oom.used_bytes)} of {gib(oom.capacity_bytes)} GiB"
    )


def in_phase(phase: str | None, step: int | None) -> str:
    """Where in the program."""
    where = f"in {(phase or 'unknown phase').replace('_', ' ')}"
    return where if step is None else f"{where}, step {step}"


def assumed(item: Assumed) -> str:
    """One kind of value that had to be assumed."""
    where = f" at {item.where}" if item.where else ""
    value = f" {item.value}" if item.value else ""
    times = f" ({item.count} times)" if item.count is not None and item.count > 1 else ""
    return f"{item.what}{where}{value}{times}"


def figure(item: Figure) -> str:
    """One size that was invented, modelled, or is not known."""
    note = f", {item.note}" if item.note else ""
    return f"{item.what} {'of unknown size' if item.bytes is None else format_bytes(item.bytes)}{note}"


def modelled(item: Figure) -> str:
    """One size or choice that comes from a model; a choice has no size."""
    return figure(item) if item.bytes is not None else f"{item.what}{f', {item.note}' if item.note else ''}"


def unsimulated(item: Unsimulated) -> str:
    """One call that the virtual card doesn't simulate."""
    answer = UNKNOWN if item.answer is None else item.answer
    return f"{item.symbol} of {item.library} is not simulated, it answered {answer}"


def count(number: int, thing: str) -> str:
    """A number and its noun."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _peak(report: Report) -> str:
    return f"peak {gib(report.peaks.process_total_bytes)} of {format_gib(memory_bytes(report))} GiB"


def _free(report: Report) -> int:
    return memory_bytes(report) - (report.peaks.process_total_bytes or 0)


def _highest(report: Report) -> str:
    if report.highest is None:
        return ""
    device = f", cuda:{report.highest.device}" if report.gpus > 1 else ""
    return f"; highest {in_phase(report.highest.phase, report.highest.step)}{device}"


def _need(report: Report) -> str:
    oom, memory = report.oom, memory_bytes(report)
    if oom is None or oom.caught:
        return f"needs about {gib(report.needs_bytes)} of {format_gib(memory)} GiB{_highest(report)}"
    where = f"out of memory {in_phase(oom.phase, oom.step)}"
    if report.needs_bytes is None:
        return f"{where}; what it needs is unknown"
    if report.needs_bytes <= memory:
        return f"{where}, at a limit below the card's memory (set_per_process_memory_fraction?)"
    return f"{where}; needs at least {gib(report.needs_bytes)} of {format_gib(memory)} GiB"


def _why_unknown(report: Report) -> str:
    if report.peaks.process_total_bytes is None:
        return "the program put nothing on the card"
    return f"the program broke off within its first step; until then {_peak(report)}"


def _close(report: Report) -> str | None:
    above = report.outside.high_bytes - report.outside.bytes
    if report.verdict != FITS:
        return None
    if _free(report) < above:
        return "close: with what is outside the allocator at its upper end it might not fit"
    low = report.card.memory_low_bytes
    if (
        low is None
        or report.capacity_bytes != report.card.memory_bytes
        or low >= (report.peaks.process_total_bytes or 0)
    ):
        return None
    return f"close: some drivers report only {format_gib(low)} GiB of this card's memory, on which it might not fit"


def _partial(report: Report) -> str | None:
    how = report.stopped
    if not how.partial or how.how == "oom":
        return None
    return f"partial: {stopped(how).removesuffix(': partial')}; what comes later is not in these figures"


def _retried(report: Report) -> str | None:
    """The reason why reserved can fall, or rise less than on a larger card."""
    if not report.retries or (report.oom is not None and not report.oom.caught):
        return None
    first, total = report.retries[0], sum(each.count for each in report.retries)
    return (
        f"the card was full {in_phase(first.phase, first.step)}: the allocator gave its cache back and tried again "
        f"({total} in all), so reserved is lower than on a larger card, and the step slower"
    )


def _caught(report: Report) -> str | None:
    if report.oom is None or not report.oom.caught:
        return None
    return f"the program ran out of memory {in_phase(report.oom.phase, report.oom.step)} and went on"


def _cached(report: Report) -> str | None:
    """Without a limit the allocator keeps what on a full card it would give back."""
    allocated = report.peaks.allocated_bytes
    if report.capacity_bytes is not None or report.verdict != DOES_NOT_FIT or allocated is None:
        return None
    if allocated + report.outside.bytes > report.card.memory_bytes:
        return None
    cache = "part of it is cache that the allocator gives back on a full card"
    return f"{cache}: without --memory unlimited it might fit"


def _shared(report: Report) -> str | None:
    most = max((each.processes or 0 for each in report.devices), default=0)
    if most < 2:
        return None
    return f"{most} processes hold memory on one card: the process total is of all, the other figures of one"
