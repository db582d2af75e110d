"""An answer of `explain`: one question about a run, with this run's numbers."""

from __future__ import annotations

from dataclasses import dataclass

PUZZLE, WASTE, WRONG = "puzzle", "waste", "wrong"
"""How serious a finding is: a number that surprises, memory that could be saved, or something that the
program most likely does not mean to do."""

RECORDED = "from the recorded bytes"
ESTIMATE = "estimate"
ANOTHER_RUN = "another run shows it"
UNTRIED = "when another run shows it"
"""How a saving is known; UNTRIED goes with an unknown one."""

ALLOCATED, RESERVED = "peak allocated", "peak reserved"
"""What a saving is a saving of."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One figure that an answer rests on."""

    label: str
    size_bytes: int
    note: str = ""
    is_change: bool = False
    """It is a difference, with its sign."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change to the program, and what it does to a peak of the whole run."""

    change: str
    saved_bytes: int | None
    """The peak before minus the peak after, of this change alone; None: not known."""
    known: str
    """RECORDED, ESTIMATE, ANOTHER_RUN, or UNTRIED."""
    note: str = ""
    of: str = ALLOCATED
    at_least: bool = False
    """It may save more than the recorded bytes can show."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A question as a user would ask it, and the answer."""

    key: str
    """Its name in JSON, one per kind: "reserved", "leak" …"""
    question: str
    answer: str
    """Sentences."""
    stake_bytes: int
    """What it is about, in bytes; findings are ordered by it."""
    severity: str = PUZZLE
    """PUZZLE, WASTE or WRONG."""
    evidence: tuple[Evidence, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    where: tuple[str, ...] = ()
    """Module paths and source lines, the weightiest first."""


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """By the bytes at stake, most first; among equals in the order that they were found."""
    return tuple(sorted(findings, key=lambda each: -each.stake_bytes))
