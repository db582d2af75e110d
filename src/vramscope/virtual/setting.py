"""The conditions that a program is run under on a card that isn't there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from vramscope.cards import Card, Outside, outside_of
from vramscope.run.report import UNLIMITED_BYTES


@dataclass(frozen=True, slots=True)
class Setting:
    """The card and the conditions that a program is run under."""

    card: Card
    gpus: int = 1
    memory_bytes: int | None = None
    """None: the card's own; UNLIMITED_BYTES: no limit."""
    steps: int | None = 3
    """Optimizer steps after which the program is stopped; None: it runs to its end."""
    assume: str = ""
    environment: Mapping[str, str] | None = None
    """The program's environment; None: this process's."""
    history: bool = True
    """Every allocation is followed; False: only the peaks of phases, at half the time a step."""

    @property
    def capacity_bytes(self) -> int | None:
        """The memory of the card as it is shown to the program; None: no limit."""
        if self.memory_bytes is None:
            return self.card.memory_bytes
        return None if self.memory_bytes >= UNLIMITED_BYTES else self.memory_bytes

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment that the program is given."""
        given = os.environ if self.environment is None else self.environment
        return given if self.history else {**given, "VRAMSCOPE_HISTORY": "off"}

    @property
    def outside(self) -> Outside:
        """What the process holds on the card beside the allocator's memory."""
        return outside_of(self.card, eager=self.variables.get("CUDA_MODULE_LOADING", "").upper() == "EAGER")
