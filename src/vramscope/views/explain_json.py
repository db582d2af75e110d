"""The answers of `explain` as JSON, ``vramscope.explain/1`` (docs/explain.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from vramscope.analysis.explain.finding import Finding
from vramscope.run.run import Run

EXPLAIN_SCHEMA = "vramscope.explain/1"


def explain_json(run: Run, findings: Sequence[Finding], unknown: Sequence[str]) -> str:
    """All of them in their order, two spaces of indent, with a line end; what is not known is null."""
    document = {
        "schema": EXPLAIN_SCHEMA,
        "name": run.name,
        "origin": run.origin,
        "findings": [asdict(finding) for finding in findings],
        "not_known": list(unknown),
    }
    return json.dumps(document, indent=2) + "\n"
