"""Builds a source's model once, on paper, and says what it is.  Runs in a process that has the libraries."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from vramscope.errors import MissingLibraryError, UsageError
from vramscope.jobs import anatomy
from vramscope.jobs.facts import Facts
from vramscope.jobs.source import parse_source
from vramscope.jobs.sources import on_paper


def inspect(text: str) -> Facts:
    """The facts of a source; SourceError or MissingLibraryError for a model that cannot be had."""
    paper = on_paper(parse_source(text))
    module = paper.module
    return replace(
        paper.facts,
        kind=type(module).__name__,
        parameters=anatomy.parameters(module),
        layers=anatomy.layers(module),
        blocks=anatomy.blocks(module),
        modules=sum(1 for _ in module.modules()),
    )


def main(text: str, path: str) -> None:
    """Writes ``{"facts": …}`` to a path, or ``{"error": {"kind", "text", …}}`` if the model cannot be had."""
    try:
        told: dict[str, Any] = {"facts": inspect(text).to_json()}
    except UsageError as error:
        told = {"error": _told(error, text)}
    Path(path).write_text(json.dumps(told))


def _told(error: UsageError, text: str) -> dict[str, str]:
    """An error as a plain value, with what it was made of."""
    told = {"kind": type(error).__name__, "text": str(error)}
    if isinstance(error, MissingLibraryError):
        told.update(what=text, library=error.library, command=error.command)
    return told
