"""How far a grid is, as values for whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

PREPARING, PREDICTING, TRAINING, EVALUATING = "preparing", "predicting", "training", "evaluating"
ENDED, KNOWN = "ended", "known"
"""A cell has ended now; it was finished by an earlier run."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One thing that has just happened."""

    stage: str
    what: str = ""
    """For people: the cell as ``fp32 · full``, or what is prepared."""
    cell: int = 0
    """From 1; 0: no cell is meant."""
    cells: int = 0
    epoch: int = 0
    """From 1."""
    epochs: int = 0
    step: int = 0
    """So many batches of this epoch are done."""
    steps: int = 0
    loss: float | None = None
    """The mean over the samples of this epoch so far."""
    accuracy: float | None = None
    verdict: str = ""
    """Of a cell that has ended."""


class OnProgress(Protocol):
    """Who wants to know; called in the thread of `train_grid`."""

    def __call__(self, progress: Progress) -> None:
        """Something has happened."""


def silent(progress: Progress) -> None:
    """Nobody wants to know."""
