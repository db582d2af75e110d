"""What the program prints: a line of JSON for each reading, and one for the count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vramscope.lab.stages.value import STAGES, Counted

UNITS = {"fvcore": "multiply-add", "torch.utils.flop_counter": "multiplication or addition"}
"""By the library that counts, what it calls a FLOP."""


@dataclass(frozen=True, slots=True)
class Told:
    """As far as the program came."""

    readings: dict[str, int] = field(default_factory=dict)
    counted: Counted | None = None


def told_by(output: str) -> Told:
    """What stands in a program's output; lines of anybody else do not count."""
    readings: dict[str, int] = {}
    counted = None
    for line in _objects(output):
        size, stage = line.get("reserved_bytes"), line.get("stage")
        if stage in STAGES and isinstance(size, int):
            readings[stage] = size
        elif line.get("counted") in UNITS:
            counted = _counted(line)
    return Told(readings, counted)


def _counted(line: dict[str, Any]) -> Counted:
    return Counted(
        line["counted"], _number(line, "flops"), UNITS[line["counted"]], _number(line, "activations")
    )


def _number(line: dict[str, Any], name: str) -> int | None:
    value = line.get(name)
    return int(value) if isinstance(value, (int, float)) else None


def _objects(output: str) -> Iterator[dict[str, Any]]:
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found
