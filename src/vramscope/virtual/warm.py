"""Programs on virtual machines, without importing torch for each: the owner's side of recording/warm.py."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from vramscope.cards import find_card, outside_of
from vramscope.errors import TorchError
from vramscope.run.report import UNLIMITED_BYTES
from vramscope.virtual.launch import Finished, virtual_machine
from vramscope.virtual.setting import Setting

_ANY_CARD = "rtx-4090"
"""What libraries see that look for a card when they are imported; every program gets its own."""
_TAIL = 16 << 10
"""So much of a program's output is kept, from its end."""
KILLED = -signal.SIGKILL

Answer = Mapping[str, Any]
"""``{}``: the server has ended."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A program that has ended: what its machine knows, and the end of what it printed."""

    finished: Finished
    output: str


class WarmServer:
    """A process that has imported `modules` under an environment; `run` runs programs in forks of it.

    Any number of threads may use it at a time.  It starts with the first program and starts again if it was
    killed.  Use it as a context manager, or `close` it."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._modules = tuple(modules)
        self._environment = {**os.environ, **(environment or {})}
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._users = 0

    def __enter__(self) -> WarmServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def busy(self) -> bool:
        """A program runs, or is about to."""
        return self._users > 0

    def close(self) -> None:
        """Ends the process, and with it the programs that still run."""
        with self._lock:
            if self._process is not None:
                self._process.close()
            self._process = None

    def run(self, script: Path, setting: Setting, limit_s: float | None = None) -> Ran:
        """Runs a script under a setting (its environment is the server's) and waits for its end.

        A program that is not done after `limit_s` seconds is killed.  TorchError if the server cannot start."""
        with self._used():
            return self._run(script, setting, limit_s)

    def _run(self, script: Path, setting: Setting, limit_s: float | None) -> Ran:
        process = self._started()
        began = time.monotonic()
        with (
            _machine(setting) as (machine, variables),
            tempfile.TemporaryDirectory(prefix="vramscope-") as folder,
        ):
            output = Path(folder) / "output"
            status = process.run(
                {"script": str(script), "environment": variables, "output": str(output)}, limit_s
            )
            peaks = machine.peak_used_bytes(setting.gpus)
            finished = Finished(status, machine.journal(), peaks, time.monotonic() - began)
            return Ran(finished, _tail(output))

    @contextlib.contextmanager
    def _used(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1

    def _started(self) -> _Process:
        with self._lock:
            if self._process is None or self._process.ended:
                self._process = _Process(self._modules, self._environment)
            return self._process


class _Process:
    """One life of a server."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        self._numbers = itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[Answer]] = {}
        self._lock = threading.Lock()
        self._open = contextlib.ExitStack()
        self.ended = False
        with contextlib.ExitStack() as undo:
            undo.callback(self._open.close)
            self._popen = self._start(modules, environment)
            self._check_ready(modules)
            undo.pop_all()
        threading.Thread(target=self._listen, name="vramscope-warm", daemon=True).start()

    def run(self, request: Mapping[str, Any], limit_s: float | None) -> int:
        """The status of a program, once it has ended; KILLED too where the server died and took it with it."""
        number, answers = next(self._numbers), queue.SimpleQueue[Answer]()
        with self._lock:
            self._answers[number] = answers
            if self.ended:
                return KILLED
            self._send({"id": number, **request})
        pid = answers.get().get("pid")
        if pid is None:
            return KILLED
        try:
            status = answers.get(timeout=limit_s)
        except queue.Empty:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            status = answers.get()
        return int(status.get("status", KILLED))

    def close(self) -> None:
        """Ends it."""
        self._popen.kill()
        self._popen.wait()
        self._open.close()

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._popen.stdin is not None
        with contextlib.suppress(OSError):  # it has just ended: the listener tells all who wait
            self._popen.stdin.write(json.dumps(request) + "\n")
            self._popen.stdin.flush()

    def _start(self, modules: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
        card = find_card(_ANY_CARD)
        machine = virtual_machine(
            card,
            outside=outside_of(card),
            memory_bytes=UNLIMITED_BYTES,
            steps=None,
            environment=environment,
        )
        _, variables = self._open.enter_context(machine)
        silent = {"VRAMSCOPE_JOURNAL": "", "VRAMSCOPE_MACHINE": ""}  # the server itself is no program
        return subprocess.Popen(
            [sys.executable, "-m", "vramscope.recording.warm", *modules],
            env={**variables, **silent},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C ends it through us
        )

    def _check_ready(self, modules: Sequence[str]) -> None:
        assert self._popen.stdout is not None
        line = self._popen.stdout.readline()
        if not line:
            raise TorchError("the process that runs the programs ended at once; `vramscope doctor` looks why")
        if not json.loads(line)["ready"]:
            self._popen.kill()
            raise TorchError(f"one of {', '.join(modules)} uses the card when it is imported")

    def _listen(self) -> None:
        """Hands the answers to those who wait for them."""
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            answer = json.loads(line)
            self._answers[answer["id"]].put(answer)
        with self._lock:
            self.ended = True
            for waiting in self._answers.values():
                waiting.put({})
        self._popen.wait()


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
