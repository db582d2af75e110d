"""What a source's model is: it is built once, without weights, in a process that has its library."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vramscope import errors
from vramscope.errors import SourceError, UsageError
from vramscope.jobs.facts import Facts
from vramscope.jobs.libraries import modules_for
from vramscope.jobs.source import FUNCTION, Source
from vramscope.planning.cell import Cell
from vramscope.planning.last_words import NOTHING, last_error
from vramscope.planning.pool import server_for

_CARD = "h100"
"""A model on paper needs no memory; a function's may be made on a card, which then has no end."""
_PROGRAM = """\
from vramscope.jobs.inspecting import main

main({source!r}, {path!r})
"""


def environment_of(source: Source) -> dict[str, str]:
    """The variables that a source's programs need: the user's own module is found from the current folder."""
    if source.library != FUNCTION:
        return {}
    return {"PYTHONPATH": os.pathsep.join(filter(None, (os.getcwd(), os.environ.get("PYTHONPATH"))))}  # noqa: PTH109


def facts_of(source: Source) -> Facts:
    """The facts; SourceError or MissingLibraryError for a model that cannot be had."""
    with tempfile.TemporaryDirectory(prefix="vramscope-") as folder:
        path, script = Path(folder) / "facts.json", Path(folder) / "inspect_model.py"
        script.write_text(_PROGRAM.format(source=source.text, path=str(path)))
        cell = Cell(
            script.read_text(), script.stem, _CARD, modules_for(source), environment_of(source), history=False
        ).unlimited()
        ran = server_for(cell).run(script, cell.setting())
        return facts_in(path, source, ran.output)


def facts_in(path: Path, source: Source, output: str) -> Facts:
    """The facts that `jobs.inspecting` wrote to a file, or the error that it met; if it wrote nothing, what it said."""
    if not path.exists():
        raise SourceError(f"{source.text} cannot be built: {last_error(output) or NOTHING}")
    told = json.loads(path.read_text())
    if "error" in told:
        raise _error_from(told["error"])
    return Facts.from_json(told["facts"])


def _error_from(told: Mapping[str, Any]) -> UsageError:
    """The error that was raised over there."""
    if told["kind"] == "MissingLibraryError":
        return errors.MissingLibraryError(told["what"], told["library"], told["command"])
    kind = getattr(errors, told["kind"], SourceError)
    found: UsageError = kind(told["text"])
    return found
