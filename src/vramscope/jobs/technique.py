"""Techniques: small named pieces, each of which writes into a program what a user would write for it.

A *knob* is what can be turned (``precision``), a *technique* one of its positions (``amp-fp16``),
perhaps with an argument (``lora:8``)."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from vramscope.errors import RecipeError

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

AUTO = "auto"
"""The value of a knob that is turned to what suits the model."""


class Maths(IntEnum):
    """What a technique does to the result, from nothing to the most."""

    SAME = 0
    """The same operations on the same numbers."""
    ORDER = 1
    """The same sums in another order: differences of rounding."""
    ROUNDING = 2
    """Fewer bits: usually harmless, sometimes not."""
    OTHER = 3
    """Something else is computed or trained."""


def _no_objection(argument: str, work: Work) -> str | None:
    return None


def _nothing(argument: str, script: Script, work: Work) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Technique:
    """One position of a knob."""

    name: str
    summary: str
    """One sentence without a full stop: what it does."""
    write: Callable[[str, Script, Work], None] = _nothing
    """Writes it into the program: `(argument, script, work)`."""
    refuses: Callable[[str, Work], str | None] = _no_objection
    """Why it does not go with this model and recipe, as a sentence; None: it does."""
    argument: Callable[[str], str] | None = None
    """Checks the text behind the colon and gives it in its usual form; RecipeError. None: it takes none."""
    usual: str | None = None
    """The argument where none is written; None: one must be (if it takes any)."""
    maths: Maths = Maths.SAME
    price: str = ""
    """What it costs, for people: ``the forward runs twice, about a third more time``."""
    intrusion: int = 0
    """0 for what nobody notices to 9: the order in which `--budget` tries."""
    packages: tuple[str, ...] = ()
    """What must be importable beyond torch."""
    training_only: bool = False


@dataclass(frozen=True, slots=True)
class Knob:
    """What can be turned."""

    name: str
    summary: str
    default: str
    """The text of the position that it has if nobody turns it; AUTO: what suits the model."""
    techniques: tuple[Technique, ...] = ()
    number: Callable[[str], str] | None = None
    """For knobs whose positions are numbers (batch, seq): checks one and gives it in its usual form.  A number that
    is written into programs has one technique, which gets it as its argument."""
    training_only: bool = False
    by_name: dict[str, Technique] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.by_name.update({each.name: each for each in self.techniques})

    def position(self, text: str) -> str:
        """The usual form of a position's text; RecipeError if there is no such one."""
        text = text.strip()
        if text == AUTO and self.default == AUTO:
            return AUTO
        if self.number is not None:
            return self.number(text)
        name, colon, argument = text.partition(":")
        technique = self.by_name.get(name)
        if technique is None:
            raise RecipeError(f"{self.name}={text}: {nearest(name, tuple(self.by_name))}")
        if technique.argument is None:
            if colon:
                raise RecipeError(f"{self.name}={text}: {name} takes nothing behind a colon")
            return name
        if not argument and technique.usual is None:
            raise RecipeError(f"{self.name}={text}: write {name}: and a value, {technique.summary}")
        return f"{name}:{technique.argument(argument or str(technique.usual))}"

    def technique(self, position: str) -> tuple[Technique | None, str]:
        """The technique of a position, and its argument ("" if it takes none); None for AUTO and for numbers that no
        technique writes."""
        if self.number is not None and self.techniques and position != AUTO:
            return self.techniques[0], position
        name, _, argument = position.partition(":")
        return self.by_name.get(name), argument


def nearest(word: str, known: Sequence[str]) -> str:
    """Which words there are instead of one that there is not, the nearest ones if any are near."""
    near = difflib.get_close_matches(word, known, 3, 0.5)
    if near:
        return f"there is no {word!r}; did you mean {', '.join(near)}?"
    return f"there is no {word!r}; there is {', '.join(known)}"


def whole_number(what: str, least: int = 1, most: int = 1 << 40) -> Callable[[str], str]:
    """A checker of whole numbers: RecipeError for anything else and for those out of bounds."""

    def check(text: str) -> str:
        try:
            value = int(text)
        except ValueError:
            raise RecipeError(f"{what} must be a whole number, not {text!r}") from None
        if not least <= value <= most:
            raise RecipeError(
                f"{what} must be at least {least}" + (f" and at most {most}" if value > most else "")
            )
        return str(value)

    return check
