"""The staged measurement as JSON, ``vramscope.lab-stages/1`` (docs/lab-stages.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from vramscope.lab.stages.value import Staged

STAGES_SCHEMA = "vramscope.lab-stages/1"


def stages_lab_json(found: Sequence[Staged]) -> str:
    """All of it under the names of `vramscope.lab.stages.value.Staged`, two spaces of indent, with a line end."""
    told = {"schema": STAGES_SCHEMA, "models": [each.to_json() for each in found]}
    return json.dumps(told, indent=2) + "\n"
