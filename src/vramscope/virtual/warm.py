"""Programs on virtual machines, without importing torch for each: the owner's side of recording/warm.py."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from vramscope.errors import TorchError
from vramscope.virtual.launch import Finished, virtual_machine
from vramscope.virtual.setting import Setting
from vramscope.virtual.warm_process import WarmProcess

_TAIL = 16 << 10
"""So much of a program's output is kept, from its end."""
KILLED = -signal.SIGKILL


@dataclass(frozen=True, slots=True)
class Ran:
    """A program that has ended: what its machine knows, and the end of what it printed."""

    finished: Finished
    output: str
    late: bool = False
    """It was killed because it took longer than it might."""
    lost: bool = False
    """It was killed because the process that it is a fork of was."""


class WarmServer:
    """A process that has imported `modules` under an environment; `run` runs programs in forks of it.

    Any number of threads may use it at a time.  It starts with the first program and starts again if it was
    killed.  Use it as a context manager, or `close` it; should this process be killed, it ends by itself."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """`environment` is the programs' whole environment; None: this process's."""
        self._modules = tuple(modules)
        self._environment = dict(os.environ if environment is None else environment)
        self._lock = threading.Lock()
        self._process: WarmProcess | None = None
        self._users = 0
        self._closed = False

    def __enter__(self) -> WarmServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def awake(self) -> bool:
        """Its process is there."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """Its process's number; None while there is none."""
        process = self._process
        return None if process is None or process.ended else process.pid

    def rest(self) -> bool:
        """Ends the process if nothing runs in it, until the next program; whether it did."""
        with self._lock:
            if self._users == 0:
                self._end()
            return self._process is None

    def close(self) -> None:
        """Ends the process, and with it the programs that still run; it starts no more."""
        with self._lock:
            self._closed = True
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.close()
        self._process = None

    def run(self, script: Path, setting: Setting, limit_s: float | None = None) -> Ran:
        """Runs a script under a setting (its environment is the server's) and waits for its end.

        A program that is not done after `limit_s` seconds is killed.  TorchError if the process cannot start,
        CancelledError if the server was closed meanwhile."""
        try:
            with self._used() as process:
                ran = _run(process, script, setting, limit_s)
        except TorchError:
            if self._closed:  # while it was starting
                raise CancelledError from None
            raise
        if ran.lost and self._closed:
            raise CancelledError
        return ran

    @contextlib.contextmanager
    def _used(self) -> Iterator[WarmProcess]:
        with self._lock:
            process = self._started()
            self._users += 1
        try:
            yield process
        finally:
            with self._lock:
                self._users -= 1

    def _started(self) -> WarmProcess:
        if self._closed:
            raise CancelledError
        if self._process is not None and self._process.ended:
            self._end()
        if self._process is None:
            self._process = WarmProcess(self._modules, self._environment)
        return self._process


def _run(process: WarmProcess, script: Path, setting: Setting, limit_s: float | None) -> Ran:
    began = time.monotonic()
    with (
        _machine(setting) as (machine, variables),
        tempfile.TemporaryDirectory(prefix="vramscope-") as folder,
    ):
        output = Path(folder) / "output"
        status, late = process.run(
            {"script": str(script), "environment": variables, "output": str(output), "folder": _here()},
            limit_s,
        )
        peaks = machine.peak_used_bytes(setting.gpus)
        ended = KILLED if status is None else status
        finished = Finished(ended, machine.journal(), peaks, time.monotonic() - began)
        return Ran(finished, _tail(output), late, lost=status is None)


def _here() -> str:
    """The current folder, which the program gets; "" if there is none any more."""
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""


@contextlib.contextmanager
def _machine(setting: Setting) -> Iterator[tuple[Any, dict[str, str]]]:
    """A machine for one program, and the variables that tell a fork of it."""
    with virtual_machine(
        setting.card,
        outside=setting.outside,
        devices=setting.gpus,
        memory_bytes=setting.memory_bytes,
        steps=setting.steps,
        assume=setting.assume,
        environment={},
    ) as (machine, variables):
        told = {name: value for name, value in variables.items() if name.startswith("VRAMSCOPE_")}
        yield machine, {**told, "VRAMSCOPE_HISTORY": "" if setting.history else "off"}


def _tail(path: Path) -> str:
    """The end of what the program printed."""
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _TAIL, 0))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
