"""A comparison as JSON, ``vramscope.diff/1`` (docs/diff.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from vramscope.analysis.compare.figures import Comparison, Held, ModulePair, Pair

DIFF_SCHEMA = "vramscope.diff/1"


def to_json(found: Comparison) -> str:
    """All of it, two spaces of indent, with a line end."""
    document = {
        "schema": DIFF_SCHEMA,
        "a": asdict(found.a),
        "b": asdict(found.b),
        "is_residual": found.is_residual,
        "conditions": [asdict(each) for each in found.conditions],
        **{
            name: [_pair(found, each) for each in getattr(found, name)]
            for name in ("totals", "categories", "highest", "phases")
        },
        "modules": [row for tree in found.modules for row in _modules(tree)],
        "reasons": [asdict(each) for each in found.reasons],
    }
    return json.dumps(document, indent=2) + "\n"


def _pair(found: Comparison, pair: Pair) -> dict[str, Any]:
    return {
        **asdict(pair),
        "change_bytes": pair.change_bytes,
        "residual_bytes": found.residual_bytes(pair),
        "residual_share": found.residual_share(pair),
    }


def _modules(tree: ModulePair) -> Iterator[dict[str, Any]]:
    """Parents before what is below them."""
    yield {
        "path": tree.path,
        "copies": tree.copies,
        "last": tree.last or None,
        "a": _held(tree.a),
        "b": _held(tree.b),
    }
    for child in tree.children:
        yield from _modules(child)


def _held(held: Held | None) -> dict[str, int] | None:
    return None if held is None else asdict(held)
