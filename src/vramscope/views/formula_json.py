"""Formulas as JSON, ``vramscope.formula/1`` (docs/formula.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vramscope.theory.formula import Formula
from vramscope.theory.training import Sheet

if TYPE_CHECKING:
    from vramscope.theory.held import Held

FORMULA_SCHEMA = "vramscope.formula/1"


def sheet_json(found: Sheet) -> str:
    """All of the sheet, under the names of `vramscope.theory.training.Sheet`."""
    told = asdict(found)
    for name in ("parts", "matrix"):
        for row, each in zip(told[name], getattr(found, name), strict=True):
            row |= {"lasting_bytes": each.lasting_bytes, "total_bytes": each.total_bytes}
    for row, claimed in zip(told["claims"], found.claims, strict=True):
        row["claim"]["per_parameter"] = claimed.claim.per_parameter
    return _text({"sheet": told})


def formulas_json(found: Sequence[Formula]) -> str:
    """Formulas of the catalogue, worked out."""
    return _text({"formulas": [asdict(each) for each in found]})


def list_json(found: Sequence[tuple[str, str, str]]) -> str:
    """What formulas there are."""
    names = ("name", "summary", "usage")
    return _text({"catalogue": [dict(zip(names, each, strict=True)) for each in found]})


def held_json(found: Held) -> str:
    """Formulas beside a run, under the names of `vramscope.theory.held.Held`."""
    told = asdict(found)
    for row, each in zip(told["rows"], found.rows, strict=True):
        row["beyond_bytes"] = each.beyond_bytes
    told["others"] = [{"formula": asdict(formula), "run": figure} for formula, figure in found.others]
    return _text({"model": told | {"formula_bytes": found.formula_bytes, "run_bytes": found.run_bytes}})


def _text(told: dict[str, Any]) -> str:
    return json.dumps({"schema": FORMULA_SCHEMA, **told}, indent=2) + "\n"
