"""What the grid's model is, also where there can be no virtual card."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from vramscope.errors import SourceError
from vramscope.jobs.facts import Facts
from vramscope.jobs.source import Source
from vramscope.lab.training.predicting import NO_CARD
from vramscope.planning.facts import error_from, facts_of
from vramscope.planning.last_words import last_error

_INSPECT = "import sys; from vramscope.jobs.inspecting import main; main(sys.argv[1], sys.argv[2])"


def facts_for(source: Source) -> Facts:
    """The facts; SourceError or MissingLibraryError for a model that cannot be had."""
    try:
        return facts_of(source)
    except NO_CARD:
        return facts_without_card(source)


def facts_without_card(source: Source) -> Facts:
    """The same, found out in a plain process."""
    with tempfile.TemporaryDirectory(prefix="vramscope-") as folder:
        path = Path(folder) / "facts.json"
        done = subprocess.run(
            [sys.executable, "-c", _INSPECT, source.text, str(path)], capture_output=True, text=True
        )
        if not path.exists():
            raise SourceError(f"{source.text} cannot be built: {last_error(done.stderr)}")
        told = json.loads(path.read_text())
    if "error" in told:
        raise error_from(told["error"])
    return Facts.from_json(told["facts"])
