"""Ctrl-C while the program runs: the program gets it too and ends as it will; the report comes then."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Interrupts:
    """How often Ctrl-C was pressed."""

    count: int = 0


@contextmanager
def counting_interrupts() -> Iterator[Interrupts]:
    """Counts SIGINT instead of ending by it.

    A handler and not SIG_IGN: children inherit an ignored signal, but never a handler."""
    seen = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return

    def note(_number: int, _frame: object) -> None:
        seen.count += 1

    before = signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)
