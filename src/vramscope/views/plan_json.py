"""A plan as JSON, ``vramscope.plan/1`` (docs/plan.md)."""

from __future__ import annotations

import json
from dataclasses import asdict

from vramscope.planning.plan import Plan

PLAN_SCHEMA = "vramscope.plan/1"


def plan_json(plan: Plan) -> str:
    """All of it under the names of `vramscope.planning.plan.Plan`, two spaces of indent, with a line end."""
    return json.dumps({"schema": PLAN_SCHEMA, **asdict(plan)}, indent=2) + "\n"
