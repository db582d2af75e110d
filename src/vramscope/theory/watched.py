"""The program of a workload with a watcher in it, run once."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from vramscope.errors import RecipeError
from vramscope.jobs.work import Work
from vramscope.jobs.write import write_program
from vramscope.planning.cell import Cell
from vramscope.planning.points import Request, cell_of
from vramscope.planning.running import run_once
from vramscope.theory.seen import Seen, seen_from


def seen_of(work: Work, card: str) -> Seen:
    """What one step of the workload shows; RecipeError if it breaks off."""
    request = Request(work.source, cards=(card,))
    plain = cell_of(work, card, request, history=False).unlimited()
    with tempfile.TemporaryDirectory(prefix="vramscope-") as folder:
        path = Path(folder) / "seen.json"
        program = watched_program(work, str(path))
        cell = Cell(
            program, plain.name, card, plain.modules, plain.environment, plain.fingerprint, history=False
        ).unlimited()
        _, ran = run_once(cell)
        if not path.exists():
            raise RecipeError(f"{work.source.text} cannot be watched: {_last(ran.output)}")
        return seen_from(json.loads(path.read_text()))


def watched_program(work: Work, path: str) -> str:
    """The program's text with one step, and what watches it."""
    script = write_program(work)
    script.steps = 1
    script.imports.add("from vramscope.theory.observing import Watch")
    names = ", ".join(f'"{_word(work, name)}": {name}' for name in script.optimizers if work.trains)
    script.optimizer.append(f"watch = Watch(model, {{{names}}})")
    taken = script.fetch.partition(" = ")[0]
    script.fetch += f"\nwatch.fetched({taken})"
    return f"{script.render()}\nwatch.write({path!r})\n"


def _word(work: Work, name: str) -> str:
    """The knob's word for an optimizer of the program."""
    chosen = work.recipe["optimizer"]
    return "adamw" if chosen == "muon" and name == "optimizer" else chosen


def _last(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "its process ended without a word"
