"""What the grid's model is, also where there can be no virtual card."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from vramscope.jobs.facts import Facts
from vramscope.jobs.source import Source
from vramscope.lab.training.predicting import NO_CARD
from vramscope.planning.facts import facts_in, facts_of

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
        return facts_in(path, source, done.stderr)
