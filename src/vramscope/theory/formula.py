"""A closed form: what it says, for what figures, on which assumption, and who says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

WIDTHS = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
"""Bytes of an element."""


@dataclass(frozen=True, slots=True)
class Formula:
    """One closed form with its values."""

    name: str
    expression: str
    """As people write it; its letters are explained in it or in the assumption."""
    values: Mapping[str, int | float | None]
    """By metric, which names its unit (``saved_bytes``, ``forward_flops``, ``parameters``); None: not known."""
    assumption: str
    """What must hold, or what is left out, in one sentence."""
    source: str
    """A paper, a page of documentation, or a file and the symbol in it."""
    given: Mapping[str, object] = field(default_factory=dict)
    """The figures that it was worked out for."""


def ceil_to(number: int, step: int) -> int:
    """The next multiple of a step."""
    return -(-number // step) * step
