"""Formulas held against a run on the virtual card, as one value: by category, by kind of layer, in all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from vramscope.planning.result import Result
from vramscope.run.categories import ACTIVATION
from vramscope.theory.formula import Formula
from vramscope.theory.saving import Layerwise


@dataclass(frozen=True, slots=True)
class Row:
    """A category: what its formula says, and what the run had of it when it held most; bytes."""

    category: str
    formula: Formula | None
    """None: there is no closed form."""
    formula_bytes: int | None
    run_bytes: int
    """Of the blocks that hold it."""
    asked_bytes: int
    """Of the tensors in them."""
    rounding_bytes: int
    """Blocks are multiples of 512."""
    unsplit_bytes: int
    """Rests of blocks that the allocator does not split off."""
    why: tuple[str, ...] = ()
    """What explains the difference between formula and tensors."""

    @property
    def beyond_bytes(self) -> int:
        """Tensors that the formula does not know, less those that it counts and are not there.

        formula + beyond + rounding + unsplit = run."""
        return self.asked_bytes - (self.formula_bytes or 0)


@dataclass(frozen=True, slots=True)
class ClaimHeld:
    """An article's figure for this model's parameters, beside what the run keeps of weights, gradients and states."""

    name: str
    said: str
    per_parameter: int
    said_bytes: int
    run_bytes: int
    why: str


@dataclass(frozen=True, slots=True)
class Held:
    """All of it."""

    source: str
    model: str
    card: str
    positions: Mapping[str, str]
    parameters: int
    trained: int
    rows: tuple[Row, ...]
    layers: tuple[Layerwise, ...]
    others: tuple[tuple[Formula, int | None], ...]
    """Other closed forms that are for this model, with the run's bytes beside; None: the run has no such figure."""
    claims: tuple[ClaimHeld, ...]
    unsaved_bytes: int
    """Of the activations that are alive, those that nothing saved; below 0: what was saved is gone already."""
    result: Result
    flops_formula: int | None
    """Of a step, forward and backward, by the layers' formulas."""
    flops_counted: int | None
    """By torch's counter."""
    flops_why: str
    """Why they differ; "" if they do not, or nobody knows."""
    speed: tuple[Formula, ...] = ()
    """The card's rates, and the shortest step."""
    notes: tuple[str, ...] = field(default=())

    @property
    def formula_bytes(self) -> int:
        """The sum of the categories that have a formula."""
        return sum(row.formula_bytes or 0 for row in self.rows)

    @property
    def run_bytes(self) -> int:
        """The sum of all categories, each when it held most: not a peak, which has one moment."""
        return sum(row.run_bytes for row in self.rows)

    def check(self) -> tuple[str, ...]:
        """The sums that do not close, as sentences."""
        return (*self._unclosed(), *self._unexplained(), *self.result.check())

    def _unclosed(self) -> Iterator[str]:
        for row in self.rows:
            parts = (row.formula_bytes or 0) + row.beyond_bytes + row.rounding_bytes + row.unsplit_bytes
            if parts != row.run_bytes:
                yield f"{row.category}: parts {parts} != run {row.run_bytes}"
            if min(row.rounding_bytes, row.unsplit_bytes) < 0:
                yield f"{row.category}: blocks are smaller than what is in them"
            if row.beyond_bytes and row.formula is not None and not row.why:
                yield f"{row.category}: nobody says why {row.beyond_bytes} are beyond the formula"
            if (
                row.category in self.result.categories
                and row.run_bytes < self.result.categories[row.category]
            ):
                yield f"{row.category}: {row.run_bytes} is below what it held at the peak"

    def _unexplained(self) -> Iterator[str]:
        """Of the activations: formula and what each kind of code saves otherwise make what is alive."""
        row = next((each for each in self.rows if each.category == ACTIVATION), None)
        if row is None:
            return
        by_kind = sum(each.seen_bytes - each.saved_bytes for each in self.layers)
        if row.formula_bytes != sum(each.saved_bytes for each in self.layers):
            yield "the layers' formulas do not add up to that of all activations"
        if by_kind + self.unsaved_bytes != row.beyond_bytes:
            yield f"activations: {by_kind} by kind and {self.unsaved_bytes} unsaved != {row.beyond_bytes} beyond"
