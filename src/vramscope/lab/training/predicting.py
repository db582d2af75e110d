"""Predicts the memory of the grid's cells on the virtual card, and why each differs from the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from vramscope.errors import BuildError, PlatformError, TorchError
from vramscope.jobs.facts import Facts
from vramscope.jobs.fingerprint import fingerprint
from vramscope.jobs.libraries import modules_for
from vramscope.lab.grid import Memory
from vramscope.lab.training import article
from vramscope.lab.training.data import Data
from vramscope.lab.training.kept import Kept, key_of
from vramscope.lab.training.program import predicted_program, source_of
from vramscope.lab.training.request import Request
from vramscope.planning.cell import Cell
from vramscope.planning.result import FAILED, FITS, Outcome
from vramscope.planning.running import run_cell
from vramscope.planning.versions import versions_here
from vramscope.planning.why import reasons

NO_CARD = (PlatformError, TorchError, BuildError)
"""There can be no virtual card here."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What came of a cell on the virtual card; `memory` is None where nothing did."""

    memory: Memory | None = None
    fits: bool | None = None
    why: tuple[str, ...] = ()
    failed: str = ""
    """Why there is none, as a sentence without a full stop."""
    parameters: int | None = None
    trainable: int | None = None
    notes: tuple[str, ...] = ()
    """What is modelled or assumed."""

    def to_json(self) -> dict[str, Any]:
        """A plain value."""
        return asdict(self)


def prediction_from(value: dict[str, Any]) -> Prediction:
    """The prediction of a plain value."""
    memory = value["memory"]
    return Prediction(
        **{
            **value,
            "memory": Memory(**memory) if memory else None,
            "why": tuple(value["why"]),
            "notes": tuple(value["notes"]),
        }
    )


@dataclass(slots=True)
class Predictor:
    """Predicts cells one after the other, each against the first; what is known is not run again."""

    request: Request
    data: Data
    facts: Facts
    kept: Kept
    on_cell: Callable[[str, str], None]
    """Called with the precision and tune of a cell before it is run."""
    _outcomes: dict[str, Outcome] = field(default_factory=dict)

    def predict(self, cells: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Prediction]:
        """By precision and tune; raises `NO_CARD` where there can be no virtual card."""
        found: dict[tuple[str, str], Prediction] = {}
        for place in cells:
            found[place] = self._one(place, cells[0])
        return found

    def _one(self, place: tuple[str, str], first: tuple[str, str]) -> Prediction:
        cell, against = self._cell(*place), self._cell(*first)
        key = key_of("prediction", cell.key, against.key, versions_here())
        known = self.kept.get(key)
        if known is not None:
            return prediction_from(known)
        outcome = self._run(cell, place)
        why = reasons(self._run(against, first), outcome) if place != first else ()
        prediction = prediction_of(outcome, (*_own_words(place[1], outcome), *why))
        if outcome.lasting:
            self.kept.put(key, prediction.to_json())
        return prediction

    def _run(self, cell: Cell, place: tuple[str, str]) -> Outcome:
        if cell.key not in self._outcomes:
            self.on_cell(*place)
            outcome = run_cell(cell)
            self._outcomes = {**dict(list(self._outcomes.items())[:1]), cell.key: outcome}
        return self._outcomes[cell.key]

    def _cell(self, precision: str, tune: str) -> Cell:
        source = source_of(self.request, self.data)
        return Cell(
            predicted_program(self.request, self.data, self.facts, precision, tune),
            "cell",
            self.request.gpu,
            modules_for(source),
            fingerprint=fingerprint(source),
        )


def _own_words(tune: str, outcome: Outcome) -> tuple[str, ...]:
    """What no comparison of two runs can say: why the article's loop changes nothing."""
    result = outcome.result
    if tune != article.FREEZE or result.trained is None or result.trained != result.parameters:
        return ()
    return (
        "its loop sets requires_grad on modules, where nothing reads it:"
        f" all {result.trained:,} parameters still train",
    )


def prediction_of(outcome: Outcome, why: Sequence[str]) -> Prediction:
    """What an outcome says; where it does not fit, the figures are those of a card without end."""
    result = outcome.result
    if result.verdict == FAILED:
        return Prediction(failed=result.why, notes=result.notes)
    return Prediction(
        Memory(
            result.peak_allocated_bytes,
            result.peak_reserved_bytes,
            result.process_total_bytes,
            dict(result.categories),
        ),
        result.verdict == FITS,
        tuple(why),
        "",
        result.parameters,
        result.trained,
        result.notes,
    )
