"""One life of the process that runs programs in forks of itself (recording/warm.py), as its owner sees it."""

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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from vramscope.cards import find_card, outside_of
from vramscope.errors import TorchError
from vramscope.run.report import UNLIMITED_BYTES
from vramscope.virtual.launch import virtual_machine

_ANY_CARD = "rtx-4090"
"""What libraries see that look for a card when they are imported; every program gets its own."""
_START = Path(__file__).parent.parent / "recording" / "warm_start.py"
_PATIENCE_S = 5.0
"""So long it may take to end what it has started; it takes milliseconds."""

Answer = Mapping[str, Any]
"""``{}``: the process has ended."""


class WarmProcess:
    """Starts at once; `run` may be called by any number of threads.  TorchError if it cannot start."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        self._modules = modules
        self._numbers = itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[Answer]] = {}
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._usable = False
        """Nothing that was imported has touched the card."""
        self.ended = False
        self._open = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            undo.callback(self._open.close)
            self._said = self._open.enter_context(tempfile.TemporaryFile())
            self._popen = self._start(environment)
            undo.pop_all()
        self._listener = threading.Thread(target=self._listen, name="vramscope-warm", daemon=True)
        self._listener.start()

    def run(self, request: Mapping[str, Any], limit_s: float | None) -> tuple[int | None, bool]:
        """The status of a program once it has ended, and whether it was ended by us, for its time.

        The status is None where this process ended and took the program with it.  TorchError if it never began."""
        self._require_ready()
        number, answers = next(self._numbers), queue.SimpleQueue[Answer]()
        with self._lock:
            if self.ended:
                return None, False
            self._answers[number] = answers
            self._send({"id": number, **request})
        try:
            return self._awaited(answers, limit_s)
        finally:
            with self._lock:
                del self._answers[number]

    def _awaited(self, answers: queue.SimpleQueue[Answer], limit_s: float | None) -> tuple[int | None, bool]:
        pid = answers.get().get("pid")
        if pid is None:
            return None, False
        try:
            return answers.get(timeout=limit_s).get("status"), False
        except queue.Empty:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            return answers.get().get("status"), True

    def close(self) -> None:
        """Ends it and all that it has started, at once."""
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        with contextlib.suppress(OSError):  # what could not be sent any more
            self._popen.stdin.close()
        if self._usable:  # it ends what runs, also what has left its group
            self._listener.join(_PATIENCE_S)
        self._kill()
        self._listener.join()
        self._popen.stdout.close()
        self._open.close()

    @property
    def pid(self) -> int:
        """Its number, and that of its group."""
        return self._popen.pid

    def _kill(self) -> None:
        """Ends the process's group: programs and their children too."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._popen.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has just ended: the listener tells all who wait
            self._popen.stdin.write(json.dumps(request) + "\n")
            self._popen.stdin.flush()

    def _start(self, environment: Mapping[str, str]) -> subprocess.Popen[str]:
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
            [sys.executable, str(_START), *self._modules],
            env={**variables, **silent},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            start_new_session=True,  # Ctrl-C ends it through us
        )

    def _require_ready(self) -> None:
        self._ready.wait()
        if self._usable:
            return
        if self.ended:
            raise TorchError(
                f"the process that runs the programs ended while it imported {', '.join(self._modules)}"
                f"{_last_line(self._said)}; `vramscope doctor` looks why"
            )
        self._kill()
        raise TorchError(f"one of {', '.join(self._modules)} uses the card when it is imported")

    def _listen(self) -> None:
        """Hands the answers to those who wait for them."""
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            self._hand_out(json.loads(line))
        self._kill()  # it may have been killed alone
        self._popen.wait()
        with self._lock:
            self.ended = True
            for waiting in self._answers.values():
                waiting.put({})
        self._ready.set()

    def _hand_out(self, answer: Answer) -> None:
        if "ready" in answer:
            self._usable = answer["ready"]
            self._ready.set()
            return
        with self._lock:
            waiting = self._answers.get(answer["id"])
        if waiting is not None:
            waiting.put(answer)


def _last_line(said: IO[bytes]) -> str:
    """What a process that could not begin said last."""
    with contextlib.suppress(OSError, ValueError):
        said.seek(0)
        lines = said.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f" ({last})" if last else ""
    return ""
