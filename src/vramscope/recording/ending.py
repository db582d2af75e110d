"""How a program ends: what Python notices of it is journalled once, by the process it happens in."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from types import TracebackType

from vramscope.recording import journal, where

_how = "finished"
_where: str | None = None
_catches = 0
MOST_CATCHES = 3


class StepsDone(SystemExit):
    """Ends the program after its last wanted optimizer step, as ``sys.exit(0)`` would."""

    def __init__(self) -> None:
        super().__init__(0)


def watch(main: bool) -> None:
    """Notes uncaught exceptions and the end of this process."""
    before = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        note_error(error)
        before(kind, error, trace)

    sys.excepthook = excepthook
    if main:
        atexit.register(_write_end, os.getpid())


def note_error(error: BaseException) -> None:
    """Remembers what an uncaught exception means for the run, and where it came from."""
    global _how, _where
    _where = where.of_error(error.__traceback__)
    if isinstance(error, KeyboardInterrupt):
        _how = "interrupted"
    elif type(error).__name__ == "OutOfMemoryError":
        _how = "oom"
    else:
        _how = "exception"


def stop_after_steps() -> None:
    """Ends the program now, cleanly: raises StepsDone.

    A program that catches even SystemExit meets it again at its next step; after three times, or
    in a thread whose end would not end the program, the process is left at once, its output flushed.
    """
    global _how, _catches
    _how = "steps"
    _catches += 1
    thread = threading.current_thread()
    alone = thread is not threading.main_thread() and not isinstance(thread, threading._DummyThread)
    if _catches <= MOST_CATCHES and not alone:
        raise StepsDone
    leave_now(0)


def leave_now(status: int) -> None:
    """Ends this process without its own clean-up, but with everything written."""
    from vramscope.recording import memory

    memory.finish()
    _write_end(os.getpid())
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def _write_end(pid: int) -> None:
    if pid == os.getpid():  # not in a fork, which inherits the registration
        journal.write("end", how=_how, where=_where)
