"""A workload: a model, what it is, and how it is to be run."""

from __future__ import annotations

from dataclasses import dataclass

from vramscope.jobs.facts import TRAINING, Facts
from vramscope.jobs.recipe import Recipe
from vramscope.jobs.source import Source


@dataclass(frozen=True, slots=True)
class Work:
    """All that a program is written from."""

    source: Source
    recipe: Recipe
    facts: Facts

    @property
    def task(self) -> str:
        """What is done with the model."""
        return self.recipe["task"]

    @property
    def trains(self) -> bool:
        """It steps an optimizer."""
        return self.task in TRAINING
