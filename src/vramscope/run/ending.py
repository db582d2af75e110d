"""How a run ended, and what that says about fitting."""

from __future__ import annotations

from dataclasses import replace

from vramscope.run.journal import Entry, Journal, integer, text
from vramscope.run.peaks import complete_steps
from vramscope.run.report import DOES_NOT_FIT, FITS, UNKNOWN, OutOfMemory, Stopped

_WHOLE = {"finished", "steps"}
_NOTICED = {*_WHOLE, "exception", "oom", "interrupted"}


def stopped_of(journal: Journal, status: int) -> Stopped:
    """How the program ended; a process that Python could not see end was killed or left by `os._exit`."""
    end = next((entry for entry in reversed(journal.entries) if entry["kind"] == "end"), None)
    how = text(end, "how") if end is not None else None
    if how not in _NOTICED:
        how = "signal" if status < 0 else "exit"
    where = text(end, "where") if end is not None else None
    return Stopped(how, _steps(journal, end), status, how not in _WHOLE, where)


def oom_of(journal: Journal, stopped: Stopped) -> OutOfMemory | None:
    """The last request that found no room; the program lived through it if it then stepped or ended well."""
    found = [entry for entry in journal.of("oom") if integer(entry, "device") is not None]
    if not found:
        return None
    return replace(_out_of_memory(found[-1]), caught=not _fatal(journal, found[-1], stopped))


def verdict_of(peak_bytes: int | None, memory_bytes: int, oom: OutOfMemory | None, stopped: Stopped) -> str:
    """fits, does not fit, or unknown: nothing was recorded, or it broke off within its first step."""
    if oom is not None and not oom.caught:
        return DOES_NOT_FIT
    if peak_bytes is None:
        return UNKNOWN
    if peak_bytes > memory_bytes:
        return DOES_NOT_FIT
    return UNKNOWN if stopped.partial and not stopped.steps else FITS


def _fatal(journal: Journal, oom: Entry, stopped: Stopped) -> bool:
    if stopped.how == "oom":
        return True
    later = journal.entries[journal.entries.index(oom) :]
    return stopped.status > 0 and stopped.how != "interrupted" and all(e["kind"] != "step" for e in later)


def _steps(journal: Journal, end: Entry | None) -> int:
    told = integer(end, "steps") if end is not None else None
    return len(complete_steps(journal, None)) if told is None else told


def _out_of_memory(entry: Entry) -> OutOfMemory:
    return OutOfMemory(
        device=integer(entry, "device") or 0,
        requested_bytes=integer(entry, "requested_bytes"),
        capacity_bytes=integer(entry, "capacity_bytes"),
        used_bytes=integer(entry, "used_bytes"),
        allocated_bytes=integer(entry, "allocated_bytes"),
        reserved_bytes=integer(entry, "reserved_bytes"),
        step=integer(entry, "step"),
        phase=text(entry, "phase"),
        where=text(entry, "where"),
        line=text(entry, "line"),
        module=text(entry, "module"),
    )
