"""A request, and the cells of its matrix: every combination of the varied knobs on every card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from vramscope.cards import find_card
from vramscope.errors import MissingLibraryError, RecipeError, UsageError
from vramscope.jobs.facts import Facts
from vramscope.jobs.fingerprint import fingerprint
from vramscope.jobs.knobs import knob_named
from vramscope.jobs.libraries import modules_for
from vramscope.jobs.recipe import DEFAULTS, Recipe
from vramscope.jobs.source import Source
from vramscope.jobs.techniques.packages import missing
from vramscope.jobs.work import Work
from vramscope.jobs.write import objection, settled, write_program
from vramscope.planning.cell import Cell
from vramscope.planning.facts import environment_of

MOST_CELLS = 10_000
"""A matrix beyond this is a mistake of the command line."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for."""

    source: Source
    recipe: Recipe = DEFAULTS
    vary: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By knob, its positions; the first of each make the baseline."""
    cards: tuple[str, ...] = ("rtx-4090",)
    memory_bytes: int | None = None
    """Instead of each card's own."""
    used_bytes: int = 0
    """What other processes hold on each card."""
    limit_s: float | None = None
    """The longest that a cell may take."""


@dataclass(frozen=True, slots=True)
class Point:
    """One place of the matrix."""

    number: int
    turned: Mapping[str, str]
    card: str
    work: Work | None
    objection: str
    """Why it cannot run; "" if it can."""


def request_of(request: Request) -> Request:
    """The request with knobs and positions in their usual form; RecipeError for those that there are not."""
    vary: dict[str, tuple[str, ...]] = {}
    for name, texts in request.vary.items():
        knob = knob_named(name)
        positions = tuple(dict.fromkeys(knob.position(text) for text in texts))
        if not positions:
            raise RecipeError(f"vary {knob.name}: write its values behind the =, with commas between them")
        vary[knob.name] = positions
    checked = Request(
        request.source,
        request.recipe,
        vary,
        tuple(dict.fromkeys(find_card(card).id for card in request.cards)),
        request.memory_bytes,
        request.used_bytes,
        request.limit_s,
    )
    _check_size(checked)
    return checked


def _check_size(request: Request) -> None:
    cells = len(request.cards)
    for positions in request.vary.values():
        cells *= len(positions)
    if cells > MOST_CELLS:
        raise UsageError(
            f"{cells:,} cells are more than {MOST_CELLS:,}: vary fewer knobs, or name fewer values"
        )
    for card in request.cards:
        whole = request.memory_bytes or find_card(card).memory_bytes
        if request.used_bytes >= whole:
            raise UsageError(f"--used leaves nothing of {card}: it has {whole:,} bytes")


def points_of(request: Request, facts: Facts) -> tuple[Point, ...]:
    """The matrix, one combination after the other, each on every card."""
    combinations = [
        dict(zip(request.vary, chosen, strict=True)) for chosen in product(*request.vary.values())
    ]
    places = [(turned, card) for turned in combinations for card in request.cards]
    return tuple(
        _point(number, turned, card, request, facts) for number, (turned, card) in enumerate(places, 1)
    )


def _point(number: int, turned: Mapping[str, str], card: str, request: Request, facts: Facts) -> Point:
    try:
        work = settled(request.source, request.recipe.having(turned), facts)
    except RecipeError as error:
        return Point(number, turned, card, None, str(error))
    return Point(number, turned, card, work, why_not(work) or "")


def why_not(work: Work) -> str | None:
    """Why a workload cannot run, known before anything does: techniques that do not go, libraries that are missing."""
    if sentence := objection(work):
        return sentence
    lacking: list[MissingLibraryError] = []
    for knob, technique, _ in work.recipe.techniques():
        if work.trains or not knob.training_only:
            lacking += filter(None, [missing(technique, f"{knob.name}={work.recipe[knob.name]}")])
    return str(lacking[0]) if lacking else _unwritable(work)


def _unwritable(work: Work) -> str | None:
    """What only shows when the program is written: a size that the model cannot take."""
    try:
        write_program(work)
    except RecipeError as error:
        return str(error)
    return None


def cell_of(work: Work, card: str, request: Request, *, history: bool = True) -> Cell:
    """The cell of a workload on a card, under the request's conditions."""
    script = write_program(work)
    return Cell(
        script.render(),
        _file_name(work.source.short),
        card,
        modules_for(work.source),
        {**environment_of(work.source), **script.environment},
        fingerprint(work.source),
        request.memory_bytes,
        request.used_bytes,
        history,
    )


def _file_name(text: str) -> str:
    """A name that Python could import."""
    kept = "".join(each if each.isalnum() or each == "_" else "_" for each in text)
    return kept if kept[:1].isalpha() else f"model_{kept}"
