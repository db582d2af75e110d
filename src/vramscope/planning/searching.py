"""From a request to its plan: the matrix, or a search for each of its combinations."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from vramscope.cards import all_cards
from vramscope.errors import RecipeError, UsageError
from vramscope.jobs.source import Source
from vramscope.jobs.work import Work
from vramscope.planning.budget import budget as search_budget
from vramscope.planning.cheapest import cheapest as search_cheapest
from vramscope.planning.facts import facts_of
from vramscope.planning.fit import fit as search_fit
from vramscope.planning.limits import limits
from vramscope.planning.making import Means, Planned, Planning, begin, capacity_of, matrix, planned, rows_of
from vramscope.planning.plan import Cheapest, Fit, Row
from vramscope.planning.points import Point, Request, points_of, why_not
from vramscope.planning.result import CANNOT_RUN, DOES_NOT_FIT, Result

_SIDE_BY_SIDE = 2
"""So many values does a search try at a time."""


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched for; nothing: the matrix as it is.  At most one of the first three."""

    fit: str | None = None
    """The knob whose largest value is wanted."""
    cheapest: bool = False
    """The smallest card."""
    budget_bytes: int | None = None
    """What makes it fit into so much."""
    multiple_of: int | None = None
    """Of the fit's values; None: what suits the knob."""
    margin: Callable[[int], int] = field(default=lambda whole: 0)
    """From a card's memory, how much of it a fit must leave free."""


def search(request: Request, wanted: Search, means: Means) -> Planned:
    """The plan.  UsageError, RecipeError, SourceError for what makes no sense, before any cell runs."""
    began = time.monotonic()
    _check(request, wanted)
    planning = begin(request, means)
    if wanted.fit is not None:
        rows, fits = _fits(planning, wanted, wanted.fit)
        return planned(planning, rows, began, fits=fits)
    if wanted.cheapest:
        rows, found = _cheapest(planning)
        return planned(planning, rows, began, cheapest=found)
    if wanted.budget_bytes is not None:
        return _budget(planning, wanted.budget_bytes, began)
    return planned(planning, matrix(planning), began)


def _check(request: Request, wanted: Search) -> None:
    asked = [wanted.fit is not None, wanted.cheapest, wanted.budget_bytes is not None]
    if sum(asked) > 1:
        raise UsageError("--fit, --cheapest and --budget are three questions: ask one at a time")
    if wanted.fit is None and wanted.multiple_of is not None:
        raise UsageError("--multiple-of goes with --fit")
    if wanted.multiple_of is not None and wanted.multiple_of < 1:
        raise UsageError(f"--multiple-of {wanted.multiple_of}: at least 1")
    if wanted.fit in request.vary:
        raise UsageError(f"{wanted.fit} is searched for by --fit, so it cannot be varied too")
    if wanted.budget_bytes is not None and request.vary:
        raise UsageError("--budget chooses what to turn itself: leave --vary away")


def _fits(planning: Planning, wanted: Search, knob: str) -> tuple[tuple[Row, ...], tuple[Fit, ...]]:
    """A search for every point that can run, and the rows at the answers."""
    points, fits, places = points_of(planning.request, planning.facts), [], []
    for point in points:
        if point.work is None or point.objection:
            places.append(point)
            continue
        found, work = _fit(planning, wanted, knob, point, point.work)
        fits.append(found)
        if found.largest is not None:
            turned = {**point.turned, knob: str(found.largest)}
            places.append(replace(point, turned=turned, work=work, objection=""))
    return rows_of(planning, places), tuple(fits)


def _fit(planning: Planning, wanted: Search, knob: str, point: Point, work: Work) -> tuple[Fit, Work]:
    """The search of one point, and the workload at its answer."""
    start, least, most, usual = limits(knob, work)
    capacity = capacity_of(planning.request, point.card)
    multiple, margin = wanted.multiple_of or usual, wanted.margin(capacity)

    def run(value: int, followed: bool) -> Result:
        tried = with_value(work, knob, value)
        if sentence := why_not(tried):
            return Result(CANNOT_RUN, capacity - margin, sentence)
        cell = planning.cell(tried, point.card, history=followed)
        return _with_room(planning.run([cell], f"{knob} {value}")[0].result, margin)

    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        found = search_fit(
            run,
            start=start,
            least=least,
            most=most,
            multiple_of=multiple,
            margin_bytes=margin,
            pool=pool,
            knob=knob,
            card=point.card,
            turned=point.turned,
        )
    return found, work if found.largest is None else with_value(work, knob, found.largest)


def _cheapest(planning: Planning) -> tuple[tuple[Row, ...], tuple[Cheapest, ...]]:
    """A search of every combination over the whole catalogue, and the rows on the answers."""
    one = replace(planning.request, cards=planning.request.cards[:1])
    points, found, places = points_of(one, planning.facts), [], []
    for point in points:
        if point.work is None or point.objection:
            places.append(point)
            continue
        answer = search_cheapest(_on_cards(planning, point.work), all_cards(), turned=point.turned)
        found.append(answer)
        if answer.card is not None:
            places.append(replace(point, card=answer.card))
    return rows_of(planning, places), tuple(found)


def _on_cards(planning: Planning, work: Work) -> Callable[[str], Result]:
    def run(card: str) -> Result:
        return planning.run([planning.cell(work, card)], card)[0].result

    return run


def _budget(planning: Planning, budget_bytes: int, began: float) -> Planned:
    """What makes the work fit into a budget: the row is what was asked for, the ways are in `Plan.budget`."""
    card = planning.request.cards[0]
    within = replace(planning.request, cards=(card,), memory_bytes=budget_bytes)
    (point,) = points_of(within, planning.facts)
    if point.work is None or point.objection:
        raise RecipeError(point.objection)
    tight = replace(planning, request=within)

    def unlimited(work: Work) -> Result:
        cell = tight.cell(work, card, history=False).unlimited()
        return planning.run([cell], _turned(point.work, work))[0].result

    def inside(work: Work, followed: bool) -> Result:
        cell = tight.cell(work, card, history=followed)
        return planning.run([cell], _turned(point.work, work))[0].result

    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        found = search_budget(point.work, unlimited, inside, budget_bytes=budget_bytes, card=card, pool=pool)
    return planned(tight, rows_of(tight, (point,)), began, budget=found)


def _turned(asked: Work | None, work: Work) -> str:
    """What is tried, for those who watch."""
    turned = work.recipe.turned(asked.recipe if asked else None)
    return ", ".join(f"{name} {position}" for name, position in turned.items()) or "as asked for"


def _with_room(result: Result, margin: int) -> Result:
    """The same, but what leaves less than the margin free does not fit.

    The card itself stays as it is: on a smaller one the allocator would give its cache back sooner, and what fits
    there would leave no room on this one."""
    capacity, total = result.capacity_bytes - margin, result.process_total_bytes
    too_much = result.fits and total is not None and total > capacity
    return replace(result, capacity_bytes=capacity, verdict=DOES_NOT_FIT if too_much else result.verdict)


def with_value(work: Work, knob: str, value: int) -> Work:
    """The workload with a knob that is searched over at a value."""
    if knob == "layers":
        others = tuple(pair for pair in work.source.settings if pair[0] != "num_hidden_layers")
        source = Source(work.source.library, work.source.name, (*others, ("num_hidden_layers", str(value))))
        return Work(source, work.recipe, facts_of(source))
    if knob == "lora-rank":
        name = work.recipe["tune"].partition(":")[0]
        return replace(work, recipe=work.recipe.having({"tune": f"{name}:{value}"}))
    return replace(work, recipe=work.recipe.having({knob: str(value)}))
