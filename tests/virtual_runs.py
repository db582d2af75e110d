"""Code in a process of its own on a virtual card."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from ran import Ran
from vramscope.cards import find_card, outside_of
from vramscope.virtual.launch import virtual_machine
from vramscope.virtual.machine import Machine
from vramscope.virtual.warm_process import WarmProcess


def run_virtual(
    code: str,
    gpu: str = "rtx-3090",
    *,
    devices: int = 1,
    memory_bytes: int | None = None,
    steps: int | None = None,
    assume: str = "",
    timeout: float = 240,
    cold: bool = False,
    **environment: str,
) -> Ran:
    """Runs Python code as ``python -c`` does, on a virtual card.

    It runs in a fork of a process that has imported torch already, which saves two seconds; what is about a
    process's own start or end, or about variables that torch reads when it is loaded, needs a `cold` one."""
    card = find_card(gpu)
    with virtual_machine(
        card,
        outside=outside_of(card),
        devices=devices,
        memory_bytes=memory_bytes,
        steps=steps,
        assume=assume,
        environment={**os.environ, **environment},
    ) as (machine, variables):
        patched = "import vramscope" in code or "from vramscope" in code  # before the recorder is there
        run = _run_cold if cold or environment or patched else _run_warm
        status, out, err = run(code, variables, timeout)
        return _ran(machine, status, out, err, devices)


def _ran(machine: Machine, status: int, out: str, err: str, devices: int) -> Ran:
    journal = [dict(entry) for entry in machine.journal().entries]
    return Ran(status, out, err, journal, machine.peak_used_bytes(devices))


def _run_cold(code: str, variables: dict[str, str], timeout: float) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=variables,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def _run_warm(code: str, variables: dict[str, str], timeout: float) -> tuple[int, str, str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "<string>").write_text(code)
        told = {name: text for name, text in variables.items() if name.startswith("VRAMSCOPE_")}
        status, late = _server(os.getpid()).run(
            {
                "script": "<string>",
                "environment": told,
                "output": str(folder / "out"),
                "errors": str(folder / "err"),
                "folder": name,
            },
            timeout,
        )
        assert not late, f"not done after {timeout} s"
        assert status is not None, "the process that runs the programs was killed"
        return status, (folder / "out").read_text(), (folder / "err").read_text()


@cache
def _server(owner: int) -> WarmProcess:
    """This test process's own: `owner` is its number."""
    process = WarmProcess(["torch"], {**os.environ, "VRAMSCOPE_ASSUME": ""})
    atexit.register(process.close)
    return process
