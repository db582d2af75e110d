"""Notices a program that waits on the card for ever.

On a virtual card a value that nobody knows never changes, so `while loss.item() > 0.1` never ends.  A line
that reads the same assumed value again and again, while nothing comes in from the host and no optimizer
steps, is stopped and named."""

from __future__ import annotations

from typing import Final

from vramscope.recording import ending, journal
from vramscope.recording.values import notes, places

READS_LIMIT: Final = 20_000
"""Reads of one assumption at one line without progress; some 0.2 s for a loop that does nothing else."""
_DATA_ELEMENTS: Final = 64

_reads: dict[str | None, int] = {}


class WaitsForever(SystemExit):
    """The program can't get past a line; not an Exception, so that `except Exception` doesn't catch it."""

    def __init__(self, where: str | None, what: str, value: object) -> None:
        self.where = where
        self.what = what
        super().__init__(
            f"vramscope: {where or 'a thread of its own'} waits on the card for ever: it read the same value, "
            f"{value}, {READS_LIMIT:,} times. On a virtual card nothing computes it; "
            f"`--assume {what}=...` sets what is taken instead (docs/values.md)."
        )


def progress(elements: int) -> None:
    """Data came in from the host: whatever loops, loops over something."""
    if elements >= _DATA_ELEMENTS:
        _reads.clear()


def stepped(*_: object) -> None:
    """An optimizer stepped; the recorder decides how many of those are enough."""
    _reads.clear()


def assumed_read(what: str, value: object) -> None:
    """The running line read `value`, which is assumed; raises WaitsForever when it does nothing else."""
    where = places.here()
    if where == places.PRINTS:
        return
    notes.note_assumed(what, where, f"is {value}, drawn evenly" if what == "choice" else f"is {value}")
    count = _reads[where] = _reads.get(where, 0) + 1
    if count > READS_LIMIT:
        error = WaitsForever(where, what, value)
        notes.flush()
        journal.write("waiting", where=where, note=str(error))
        _reads.clear()
        ending.note_error(error)  # a SystemExit passes the excepthook by
        raise error
