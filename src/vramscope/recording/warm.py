"""A process that has imported the large libraries already and runs programs in forks of itself.

A line of JSON on standard input is a program to run, ``{"id", "script", "environment", "output", "folder"}``,
with "errors" where standard error has a file of its own.  For each there are two answers on standard output,
``{"id", "pid"}`` when its fork is there and ``{"id", "status"}`` when it has ended.  Any number run side by side.
The process ends, and with it what still runs, when standard input does: with its owner, however that ends.  What
a program leaves running is ended after it.

No fork of a CUDA program may use the card that its parent has used, so nothing here ever does; the fork
gets a card, books and a journal of its own (native/core/ranges.c, vs_after_fork)."""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import sys
import threading
import types
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
"""linux/prctl.h: the signal that a process gets when its parent ends; orphans below it become its children."""
_EARLY = ("vramscope.recording.ending", "vramscope.recording.bootstrap", "vramscope.recording.memory")
"""What every program's start imports."""


def serve(modules: Iterable[str]) -> None:
    """Imports the modules that there are and serves until standard input ends."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what a library prints on import is no answer
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for name in (*modules, *_EARLY):
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
        """Until standard input ends, and with it all that was started."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        self._answer(ready=_untouched())
        while True:
            ready, _, _ = select.select([0, self._woken.fileno()], [], [])
            if self._woken.fileno() in ready:
                self._woken.recv(4096)
                self._reap()
            if 0 in ready and not self._read():
                _end_all()
                return

    def _read(self) -> bool:
        data = os.read(0, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._start(json.loads(line))
        return bool(data)

    def _start(self, request: Mapping[str, Any]) -> None:
        here = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._leave()
            _run(request, here)
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
        while ended := _ended_child():
            pid, status = ended
            if pid in self._running:
                self._answer(id=self._running.pop(pid), status=os.waitstatus_to_exitcode(status))
        self._end_orphans()

    def _end_orphans(self) -> None:
        """Ends what programs that have ended left running: it is our child now."""
        for pid in _children():
            if pid not in self._running:
                os.kill(
                    pid, signal.SIGKILL
                )  # it is a child that nobody has reaped: the number is still its own

    def _answer(self, **fields: object) -> None:
        os.write(self._answers, (json.dumps(fields) + "\n").encode())


def _ended_child() -> tuple[int, int] | None:
    """The number and the status of a child that has ended; None: all run, or there is none."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def _children() -> list[int]:
    """Our children's numbers; nothing on a kernel that does not tell them."""
    found: list[int] = []
    for task in os.listdir("/proc/self/task"):  # noqa: PTH208
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/children") as file:  # noqa: PTH123
            found += map(int, file.read().split())
    return found


def _end_all() -> None:
    """Ends everything below this process; what a child that ends leaves becomes our child."""
    while children := _children():
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(-1, 0)


def _untouched() -> bool:
    """Whether no import has initialised CUDA, after which a fork could not."""
    torch = sys.modules.get("torch")
    return torch is None or not torch.cuda.is_initialized()


def _run(request: Mapping[str, Any], parent: int) -> NoReturn:
    """In the fork: the program as ``python script`` would run it, and its end."""
    _die_with(parent)
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    errors = os.open(request.get("errors", request["output"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for here, there in ((nothing, 0), (output, 1), (errors, 2)):
        os.dup2(here, there)
    with contextlib.suppress(OSError):  # it is gone: then as for any process whose folder was removed
        os.chdir(request["folder"])
    os.environ.update(request["environment"])
    from vramscope.recording import bootstrap, ending

    script = request["script"]
    sys.argv[:], sys.orig_argv[1:] = [script], [script]
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.path.dirname(script))  # noqa: PTH120  (as Python itself does it)
    bootstrap.begin()
    ending.leave_now(_status_of(script))
    raise AssertionError  # leave_now does not come back


def _die_with(parent: int) -> None:
    """Ends this process as soon as the server does; orphans of the program stay below it while it runs."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != parent:  # it ended just before
        os._exit(1)


def _status_of(script: str) -> int:
    """Runs the script as ``__main__``; the status with which Python would end.

    Everything that it has made stays, as at the end of a process of its own: frees would be followed."""
    try:
        _execute(script)
        _join_threads()
    except SystemExit as end:
        _join_threads()
        return _exit_status(end)
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next  # our own frames
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error.with_traceback(trace), trace
        sys.excepthook(type(error), error, trace)
        return 1
    return 0


def _execute(script: str) -> None:
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=script, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = main
    with io.open_code(script) as file:
        code = compile(file.read(), script, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def _join_threads() -> None:
    """Waits for those that Python would wait for at its end."""
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join()


def _exit_status(end: SystemExit) -> int:
    """What Python makes of a SystemExit's value."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    print(end.code, file=sys.stderr)
    return 1
