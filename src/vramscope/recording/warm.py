"""A process that has imported the large libraries already and runs programs in forks of itself.

A line of JSON on standard input is a program to run, ``{"id", "script", "environment", "output"}``; for each
there are two answers on standard output, ``{"id", "pid"}`` when its fork is there and ``{"id", "status"}`` when
it has ended.  Any number run side by side.  The process ends, and with it what still runs, when standard input
does: with its owner, however that ends.

No fork of a CUDA program may use the card that its parent has used, so nothing here ever does; the fork
gets a card, books and a journal of its own (native/core/ranges.c, vs_after_fork)."""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
"""linux/prctl.h: the signal that a process gets when its parent ends."""


def serve(modules: Iterable[str]) -> None:
    """Imports the modules that there are and serves until standard input ends."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what a library prints on import is no answer
    for name in modules:
        _warm(name)
    gc.collect()
    gc.freeze()  # what is there now is no garbage of any program
    _Server(answers).serve()


def _warm(name: str) -> None:
    """Imports a module; one that is missing or broken is left to the programs, which say so."""
    try:
        importlib.import_module(name)
    except Exception:
        sys.modules.pop(name, None)


class _Server:
    """Requests in, forks out."""

    def __init__(self, answers: int) -> None:
        self._answers = answers
        self._running: dict[int, int] = {}
        """By process, the number of its request."""
        self._rest = b""
        self._woken, self._wake = socket.socketpair()
        for end in (self._woken, self._wake):
            end.setblocking(False)

    def serve(self) -> None:
        """Until standard input ends."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        self._answer(ready=_untouched())
        while True:
            ready, _, _ = select.select([0, self._woken.fileno()], [], [])
            if self._woken.fileno() in ready:
                self._woken.recv(4096)
                self._reap()
            if 0 in ready and not self._read():
                return

    def _read(self) -> bool:
        data = os.read(0, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._start(json.loads(line))
        return bool(data)

    def _start(self, request: Mapping[str, Any]) -> None:
        pid = os.fork()
        if pid == 0:
            self._leave()
            _run(request)
        self._running[pid] = request["id"]
        self._answer(id=request["id"], pid=pid)

    def _leave(self) -> None:
        """In a fork: what is the server's alone."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self._answers)
        self._woken.close()
        self._wake.close()

    def _reap(self) -> None:
        for pid in list(self._running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._answer(id=self._running.pop(pid), status=os.waitstatus_to_exitcode(status))

    def _answer(self, **fields: object) -> None:
        os.write(self._answers, (json.dumps(fields) + "\n").encode())


def _untouched() -> bool:
    """Whether no import has initialised CUDA, after which a fork could not."""
    torch = sys.modules.get("torch")
    return torch is None or not torch.cuda.is_initialized()


def _run(request: Mapping[str, Any]) -> NoReturn:
    """In the fork: the program as ``python script`` would run it, and its end."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for here, there in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(here, there)
    os.environ.update(request["environment"])
    from vramscope.recording import bootstrap, ending

    script = request["script"]
    sys.argv[:], sys.orig_argv[1:] = [script], [script]
    sys.path[0] = os.path.dirname(script)  # noqa: PTH120  (as Python itself does it)
    bootstrap.begin()
    ending.leave_now(_status_of(script))
    raise AssertionError  # leave_now does not come back


def _status_of(script: str) -> int:
    import runpy

    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        return _exit_status(end)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _exit_status(end: SystemExit) -> int:
    """What Python makes of a SystemExit's value."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    print(end.code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    serve(sys.argv[1:])
