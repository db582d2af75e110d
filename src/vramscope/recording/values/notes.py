"""What was assumed, where, and how often: told to the journal as the program runs.

One line for each (what, where), with cumulative counts: the first use is written at once, later
ones at most once a second and at the end, so that a loop of a million reads costs a few lines."""

from __future__ import annotations

import atexit
import os
import time
from dataclasses import dataclass

from vramscope.recording import journal
from vramscope.recording.values import places

_INTERVAL_SECONDS = 1.0


@dataclass(slots=True)
class Assumption:
    """One thing that was assumed at one line of the program."""

    what: str
    where: str | None
    value: str
    count: int = 0
    written: int = 0


_assumptions: dict[tuple[str, str | None], Assumption] = {}
_last_write = 0.0


def note_assumed(what: str, where: str | None, value: str) -> Assumption:
    """Counts one use of the assumption `what` (a key of the policy) at the line `where`."""
    entry = _assumptions.get((what, where))
    if entry is None:
        entry = _assumptions[what, where] = Assumption(what, where, value)
    entry.count += 1
    entry.value = value
    if not entry.written:
        _write(entry)
    elif time.monotonic() - _last_write > _INTERVAL_SECONDS:
        flush()
    return entry


def assume(what: str, value: str) -> Assumption | None:
    """note_assumed at the line of the program that is running now; printing a tensor decides nothing."""
    where = places.here()
    return None if where == places.PRINTS else note_assumed(what, where, value)


def assumptions() -> list[Assumption]:
    """Everything assumed so far, in the order of first use."""
    return list(_assumptions.values())


def flush() -> None:
    """Writes every count that the journal doesn't have yet."""
    global _last_write
    _last_write = time.monotonic()
    for entry in assumptions():
        if entry.written != entry.count:
            _write(entry)


def _write(entry: Assumption) -> None:
    entry.written = entry.count
    journal.write("assumed", what=entry.what, where=entry.where, count=entry.count, value=entry.value)


atexit.register(flush)
os.register_at_fork(after_in_child=_assumptions.clear)
