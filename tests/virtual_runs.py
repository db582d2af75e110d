"""Code in a process of its own on a virtual card."""

from __future__ import annotations

import os
import subprocess
import sys

from ran import Ran
from vramscope.cards import find_card, outside_of
from vramscope.virtual.launch import virtual_machine


def run_virtual(
    code: str,
    gpu: str = "rtx-3090",
    *,
    devices: int = 1,
    memory_bytes: int | None = None,
    steps: int | None = None,
    assume: str = "",
    timeout: float = 240,
    **environment: str,
) -> Ran:
    """Runs Python code in a process of its own on a virtual card."""
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
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=variables,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Ran(
            done.returncode,
            done.stdout,
            done.stderr,
            [dict(entry) for entry in machine.journal().entries],
            machine.peak_used_bytes(devices),
        )
