"""A cell of a plan: one program on one card, all that must be known to run it anywhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import vramscope
from vramscope.cards import Card, find_card
from vramscope.run.report import UNLIMITED_BYTES
from vramscope.virtual.setting import Setting


@dataclass(frozen=True, slots=True)
class Cell:
    """Plain values, so that it goes to another process or machine as it is."""

    program: str
    """Its whole text (`jobs.write`)."""
    name: str
    """What its file is called, without ``.py``."""
    card: str
    """The id of a card of the catalogue."""
    modules: tuple[str, ...] = ("torch",)
    """What a process that runs many such programs should import once."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that must be set before torch is imported."""
    fingerprint: str = ""
    """Of what the program reads beside its text: a config's file, the user's own module."""
    memory_bytes: int | None = None
    """Instead of the card's own."""
    used_bytes: int = 0
    """What other processes hold on the card."""
    history: bool = True
    """Every allocation is followed; False: only whether it fits and the peaks, at half the time."""

    @property
    def key(self) -> str:
        """Equal for cells that must come to the same result; torch's version is the store's business."""
        told = json.dumps([vramscope.__version__, asdict(self)], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()

    @property
    def capacity_bytes(self) -> int:
        """What the process may take of the card."""
        whole = find_card(self.card).memory_bytes if self.memory_bytes is None else self.memory_bytes
        return whole - self.used_bytes

    def unlimited(self) -> Cell:
        """The same on a card with memory without end, to see what it needs."""
        return replace(self, memory_bytes=UNLIMITED_BYTES, used_bytes=0)

    def setting(self) -> Setting:
        """The conditions that it runs under."""
        return Setting(
            find_card(self.card),
            memory_bytes=None if self.memory_bytes is None and not self.used_bytes else self.capacity_bytes,
            steps=None,
            environment=self.environment,
            history=self.history,
        )


def card_of(cell: Cell) -> Card:
    """The card that it runs on."""
    return find_card(cell.card)


def cell_from(value: Mapping[str, Any]) -> Cell:
    """The cell of what `asdict` made of one."""
    return Cell(**{**value, "modules": tuple(value["modules"])})
