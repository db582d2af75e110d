"""The program on this machine's own card."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from vramscope.errors import NoGpuError
from vramscope.lab.stages.told import Told, told_by
from vramscope.planning.cell import Cell
from vramscope.planning.pool import environment_for
from vramscope.real.launch import measure
from vramscope.real.nvml import real_card_name, real_cards
from vramscope.run.journal import text
from vramscope.virtual.program import Program

_ERROR = re.compile(r"^[\w.]*(?:Error|Exception)\b.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class OnCard:
    """What came of it."""

    card: str
    """Its name."""
    told: Told
    why_not: str = ""
    """Why the program broke off, as a sentence; "" if it did not."""


def has_card() -> bool:
    """Whether this machine has a real card."""
    return real_card_name() is not None


def measured(cell: Cell) -> OnCard | None:
    """Runs the cell's program on the real card, whatever card the cell names; None: the machine has none."""
    try:
        name = real_cards()[0].name
    except NoGpuError:
        return None
    with tempfile.TemporaryDirectory(prefix="vramscope-") as folder:
        script, output = Path(folder) / f"{cell.name}.py", Path(folder) / "output"
        script.write_text(cell.program)
        done = measure(
            Program("script", str(script)),
            steps=None,
            environment=environment_for(cell, os.environ),
            output=output,
        )
        said = output.read_text(errors="replace")
    used = next(filter(None, (text(each, "name") for each in done.journal.of("device"))), name)
    return OnCard(used, told_by(said), _why(done.status, said) if done.status else "")


def _why(status: int, said: str) -> str:
    errors = _ERROR.findall(said)
    return errors[-1][:300] if errors else f"the program ended with status {status}"
