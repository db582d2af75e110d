"""Runs a program unchanged on the real card, with the recorder in its processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vramscope.real.nvml import RealCard, Sampler, real_cards
from vramscope.run.journal import Journal
from vramscope.run.measured import Sample
from vramscope.virtual.launch import recorded_path, wait_for
from vramscope.virtual.machine import Machine
from vramscope.virtual.program import Program


@dataclass(frozen=True, slots=True)
class Measured:
    """A run that has ended: `status` as subprocess gives it (negative: the signal)."""

    status: int
    journal: Journal
    cards: tuple[RealCard, ...]
    samples: tuple[Sample, ...]
    looks: int
    seconds: float


def measure(
    program: Program,
    *,
    steps: int | None = 3,
    python: str | None = None,
    environment: Mapping[str, str] | None = None,
    output: Path | None = None,
) -> Measured:
    """Runs `program` and waits for its end; it inherits standard input, output and error.

    `steps` ends the program after that many optimizer steps (None: at its own end).  What it prints goes to the file
    `output`, if one is named.  Raises NoGpuError where there is no card."""
    cards = real_cards()
    given = os.environ if environment is None else environment
    with Machine() as machine:
        variables = {
            **given,
            "VRAMSCOPE_JOURNAL": machine.environment()["VRAMSCOPE_JOURNAL"],
            "VRAMSCOPE_REAL": "1",
            "VRAMSCOPE_STEPS": "" if steps is None else str(steps),
            "VRAMSCOPE_MAIN": "1",
            "PYTHONPATH": recorded_path(given),
        }
        began = time.monotonic()
        with contextlib.nullcontext() if output is None else output.open("wb") as file:
            told: dict[str, Any] = {} if file is None else {"stdout": file, "stderr": subprocess.STDOUT}
            child = subprocess.Popen([python or sys.executable, *program.command()], env=variables, **told)
        with Sampler(child.pid) as sampler:
            status = wait_for(child)
        seconds = time.monotonic() - began
        return Measured(status, machine.journal(), cards, tuple(sampler.samples), sampler.looks, seconds)
