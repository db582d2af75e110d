"""Runs a program unchanged, as a process of its own that sees the virtual card."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vramscope.cards import Card, Outside
from vramscope.run.journal import Journal
from vramscope.virtual.build import StandIns, ensure_built
from vramscope.virtual.machine import Machine
from vramscope.virtual.program import Program
from vramscope.virtual.wheel import Wheel, find_wheel

SITE = Path(__file__).parent.parent / "recording" / "site"


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that has ended: `status` as subprocess gives it (negative: the signal), the journal, the wall time.

    `peak_used_bytes` is per device, over all processes of the run, contexts included.
    """

    status: int
    journal: Journal
    peak_used_bytes: list[int]
    seconds: float


@contextlib.contextmanager
def virtual_machine(
    card: Card,
    *,
    outside: Outside,
    devices: int = 1,
    memory_bytes: int | None = None,
    steps: int | None = 3,
    assume: str = "",
    environment: Mapping[str, str] | None = None,
) -> Iterator[tuple[Machine, dict[str, str]]]:
    """A machine with `devices` virtual cards, and the environment with which a process is on it.

    `memory_bytes` replaces the card's memory; `steps` ends the program after that many optimizer
    steps (None: at its own end).  Raises what find_wheel() and ensure_built() raise.
    """
    wheel = find_wheel()
    stand_ins = ensure_built(wheel)
    shown = card if memory_bytes is None else card.with_memory(memory_bytes)
    given = os.environ if environment is None else environment
    with Machine() as machine, _preloadable(stand_ins) as preload:
        yield (
            machine,
            {
                **given,
                **machine.environment(),
                "VRAMSCOPE_CARD": shown.to_native(outside.bytes),
                "VRAMSCOPE_DEVICES": str(devices),
                "VRAMSCOPE_STEPS": "" if steps is None else str(steps),
                "VRAMSCOPE_ASSUME": assume,
                "VRAMSCOPE_MAIN": "1",
                **_loading(wheel, stand_ins, preload, given),
            },
        )


def launch(
    program: Program,
    card: Card,
    *,
    outside: Outside,
    devices: int = 1,
    memory_bytes: int | None = None,
    steps: int | None = 3,
    assume: str = "",
    python: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """Runs `program` on a virtual machine (see virtual_machine) and waits for its end.

    The program inherits standard input, output and error.
    """
    with virtual_machine(
        card,
        outside=outside,
        devices=devices,
        memory_bytes=memory_bytes,
        steps=steps,
        assume=assume,
        environment=environment,
    ) as (machine, variables):
        began = time.monotonic()
        status = wait_for(subprocess.Popen([python or sys.executable, *program.command()], env=variables))
        return Finished(status, machine.journal(), machine.peak_used_bytes(devices), time.monotonic() - began)


def _loading(wheel: Wheel, stand_ins: StandIns, preload: str, given: Mapping[str, str]) -> dict[str, str]:
    """What makes a process and its children load the stand-ins and the recorder."""
    return {
        "LD_PRELOAD": ":".join(filter(None, (preload, given.get("LD_PRELOAD")))),
        "PYTHONPATH": recorded_path(given),
        "VRAMSCOPE_CUDNN": str(wheel.libraries["cudnn"]),
        "VRAMSCOPE_TORCH": wheel.torch,
        # Triton links kernels' launchers to the driver and looks for its file.
        "TRITON_LIBCUDA_PATH": str(stand_ins.driver_folder),
        # At exit torch waits up to 10 s for an autograd thread that a finalizing interpreter has
        # stopped (torch/csrc/autograd/engine.cpp, Engine::stop); there is no work to wait for.
        "TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT": given.get("TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT", "0"),
    }


def recorded_path(given: Mapping[str, str]) -> str:
    """The text of PYTHONPATH with which every Python starts the recorder before its program."""
    return os.pathsep.join([str(SITE), *filter(None, given.get("PYTHONPATH", "").split(os.pathsep))])


@contextlib.contextmanager
def _preloadable(stand_ins: StandIns) -> Iterator[str]:
    """The text of LD_PRELOAD, in which paths cannot hold a space or a colon: then through a link."""
    if not any(c in str(stand_ins.folder) for c in " :\t\n"):
        yield ":".join(map(str, stand_ins.preload))
        return
    with tempfile.TemporaryDirectory(prefix="vramscope-") as scratch:
        link = Path(scratch) / "stand-ins"
        link.symlink_to(stand_ins.folder)
        yield ":".join(str(link / path.name) for path in stand_ins.preload)


def wait_for(child: subprocess.Popen[bytes]) -> int:
    """Waits for a program's end; its status as subprocess gives it.

    Ctrl-C reaches the program by itself, and it decides what that means; who asks us to end is
    asking for the program's end, whose report then follows.
    """

    def hand_on(number: int, _frame: object) -> None:
        child.send_signal(number)

    handlers = {signal.SIGINT: signal.SIG_IGN, signal.SIGQUIT: signal.SIG_IGN}
    with _handled({**handlers, signal.SIGTERM: hand_on, signal.SIGHUP: hand_on}):
        return child.wait()


@contextlib.contextmanager
def _handled(handlers: Mapping[signal.Signals, Any]) -> Iterator[None]:
    try:
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    except ValueError:  # not the main thread: there Python takes no signals anyway
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
