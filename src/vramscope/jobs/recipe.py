"""A recipe: the position of every knob."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vramscope.errors import RecipeError
from vramscope.jobs.knobs import KNOBS, KNOBS_BY_NAME, knob_named
from vramscope.jobs.technique import AUTO, Knob, Technique


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a workload is run.  Made by `recipe_of`, which checks; all knobs have a position."""

    positions: tuple[str, ...]
    """In the order of KNOBS."""

    def __getitem__(self, knob: str) -> str:
        return self.positions[_INDEX[knob]]

    def number(self, knob: str) -> int:
        """A knob's position as a number; it must not be AUTO any more."""
        return int(self[knob])

    def having(self, changes: Mapping[str, str]) -> Recipe:
        """This recipe with some knobs turned; RecipeError for knobs and positions that there are not."""
        positions = list(self.positions)
        for name, text in changes.items():
            knob = knob_named(name)
            positions[_INDEX[knob.name]] = knob.position(text)
        return Recipe(tuple(positions))

    def techniques(self) -> Iterator[tuple[Knob, Technique, str]]:
        """Every knob that stands on a technique, with it and its argument."""
        for knob, position in zip(KNOBS, self.positions, strict=True):
            technique, argument = knob.technique(position)
            if technique is not None:
                yield knob, technique, argument

    def turned(self, other: Recipe | None = None) -> dict[str, str]:
        """The knobs that stand otherwise than in another recipe, by default the untouched one."""
        reference = DEFAULTS if other is None else other
        return {
            knob.name: mine
            for knob, mine, theirs in zip(KNOBS, self.positions, reference.positions, strict=True)
            if mine != theirs
        }

    def open(self) -> tuple[str, ...]:
        """The knobs that are still AUTO."""
        return tuple(
            knob.name for knob, position in zip(KNOBS, self.positions, strict=True) if position == AUTO
        )


def recipe_of(positions: Mapping[str, str]) -> Recipe:
    """The recipe with these positions, the others untouched; RecipeError as in `Recipe.having`."""
    return DEFAULTS.having(positions)


def recipe_from(values: Mapping[str, str]) -> Recipe:
    """A recipe that was kept as `dict(knob=position)`; knobs of other versions are RecipeErrors."""
    if unknown := set(values) - set(KNOBS_BY_NAME):
        raise RecipeError(f"a recipe of another version of vramscope: it turns {', '.join(sorted(unknown))}")
    return DEFAULTS.having(values)


_INDEX = {knob.name: index for index, knob in enumerate(KNOBS)}
DEFAULTS = Recipe(tuple(knob.default for knob in KNOBS))
