"""A grid of trainings as JSON, ``vramscope.lab-train/1`` (docs/lab-train.md)."""

from __future__ import annotations

import json

from vramscope.lab.grid import Grid
from vramscope.views.finite import finite

GRID_SCHEMA = "vramscope.lab-train/1"


def grid_json(grid: Grid) -> str:
    """All of it under the names of `vramscope.lab.grid.Grid`, two spaces of indent, with a line end.

    JSON knows neither NaN nor infinity, which a training that diverges has for a loss: they are null."""
    return json.dumps({"schema": GRID_SCHEMA, **finite(grid.to_json())}, indent=2, allow_nan=False) + "\n"
