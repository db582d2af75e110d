"""Makes a plan: the matrix, or a search over it, all of it by running cells."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import Protocol

from vramscope.cards import find_card
from vramscope.errors import UsageError
from vramscope.jobs.facts import Facts
from vramscope.jobs.knobs import KNOBS_BY_NAME, SHAPES
from vramscope.jobs.source import FUNCTION
from vramscope.jobs.technique import AUTO
from vramscope.jobs.work import Work
from vramscope.planning.carry import carry_out
from vramscope.planning.cell import Cell
from vramscope.planning.facts import facts_of
from vramscope.planning.plan import Plan, Row
from vramscope.planning.points import Point, Request, cell_of, points_of, request_of
from vramscope.planning.result import CANNOT_RUN, Outcome, Result
from vramscope.planning.store import Store
from vramscope.planning.why import changes, prices, reasons
from vramscope.virtual.wheel import find_wheel


class Progress(Protocol):
    """Who wants to know how far it is."""

    def __call__(self, done: int, total: int | None, what: str) -> None:
        """`done` of `total` cells (None: not known), and what is being done."""


def _silent(done: int, total: int | None, what: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Means:
    """What a plan is made with."""

    executor: Executor
    store: Store
    progress: Progress = _silent


@dataclass(slots=True)
class Planning:
    """A plan in the making: the request, what is known of its model, and the cells that were run."""

    request: Request
    facts: Facts
    means: Means
    ran: dict[int, tuple[Work, Outcome]] = field(default_factory=dict)
    """By row: the workload and what came of it."""
    keys: set[str] = field(default_factory=set)
    """Of the cells that were asked for, and below how many of them the store knew beforehand."""
    reused: int = 0

    def run(self, cells: Sequence[Cell], what: str = "") -> list[Outcome]:
        """Runs cells, or finds them in the store, and tells how far it is."""
        fresh = {cell.key: cell for cell in cells if cell.key not in self.keys}
        self.reused += sum(self.means.store.knows(cell) for cell in fresh.values())
        self.keys.update(fresh)
        done = 0

        def tell(index: int, outcome: Outcome) -> None:
            nonlocal done
            done += 1
            self.means.progress(done, len(cells), what or _said(outcome.result))

        self.means.progress(0, len(cells), what)
        return carry_out(cells, self.means.executor, self.means.store, tell, self.request.limit_s)

    def cell(self, work: Work, card: str, *, history: bool = True) -> Cell:
        """The cell of a workload on a card under the request's conditions."""
        return cell_of(work, card, self.request, history=history)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with what its rows can hand on."""

    plan: Plan
    works: Mapping[int, Work]
    """By row's number."""
    runs: Mapping[int, bytes]
    """By row's number, the bytes of its ``.vram`` file: on the card, also where it does not fit."""


def begin(request: Request, means: Means) -> Planning:
    """Checks the request and builds the model on paper."""
    checked = request_of(request)
    means.progress(0, None, f"building {checked.source.text} on paper")
    return Planning(checked, facts_of(checked.source), means)


def matrix(planning: Planning) -> tuple[Row, ...]:
    """Every combination on every card, held against the first of each card."""
    points = points_of(planning.request, planning.facts)
    return rows_of(planning, points)


def rows_of(planning: Planning, points: Sequence[Point]) -> tuple[Row, ...]:
    """The rows of some points: those that can run are run."""
    runnable = [(point, point.work) for point in points if point.work is not None and not point.objection]
    cells = [planning.cell(work, point.card) for point, work in runnable]
    for (point, work), outcome in zip(runnable, planning.run(cells), strict=True):
        planning.ran[point.number] = work, outcome
    baselines = _baselines(points, planning)
    return tuple(_row(point, planning, baselines.get(point.card)) for point in points)


def _baselines(points: Sequence[Point], planning: Planning) -> dict[str, int]:
    """By card, the number of its first row that was run to its end."""
    found: dict[str, int] = {}
    for point in points:
        ran = planning.ran.get(point.number)
        if ran is not None and ran[1].result.categories:
            found.setdefault(point.card, point.number)
    return found


def _row(point: Point, planning: Planning, baseline: int | None) -> Row:
    ran = planning.ran.get(point.number)
    if ran is None:
        capacity = capacity_of(planning.request, point.card)
        return Row(point.number, point.turned, point.card, Result(CANNOT_RUN, capacity, point.objection))
    work, outcome = ran
    row = Row(point.number, point.turned, point.card, outcome.result, baseline == point.number)
    if baseline is None or row.baseline:
        return row
    first_work, first = planning.ran[baseline]
    before = {name: first_work.recipe[name] for name in KNOBS_BY_NAME}
    return replace(
        row,
        changes=changes(first.result, outcome.result),
        why=reasons(first, outcome),
        price=tuple(prices(work, before)),
    )


def capacity_of(request: Request, card: str) -> int:
    """What a process may take of a card."""
    whole = find_card(card).memory_bytes if request.memory_bytes is None else request.memory_bytes
    return whole - request.used_bytes


def planned(planning: Planning, rows: Sequence[Row], began: float, **searched: object) -> Planned:
    """The plan of the rows and of what was searched for."""
    request, facts = planning.request, planning.facts
    work = next((ran[0] for ran in planning.ran.values()), None)
    varied = tuple(dict.fromkeys(name for row in rows for name in row.turned))
    fixed = _fixed(work, varied) if work else {}
    found = Plan(
        request.source.text,
        facts.kind,
        facts.parameters,
        work.task if work else facts.tasks[0],
        fixed,
        tuple(name for name in fixed if name not in request.recipe.turned()),
        varied,
        tuple(dict.fromkeys(row.card for row in rows)) or request.cards,
        request.used_bytes,
        tuple(rows),
        versions=_versions(request.source.library, [ran[0] for ran in planning.ran.values()]),
        seconds=time.monotonic() - began,
        reused=planning.reused,
        **searched,  # type: ignore[arg-type]
    )
    works = {number: ran[0] for number, ran in planning.ran.items()}
    runs = {number: ran[1].run for number, ran in planning.ran.items() if ran[1].run is not None}
    return Planned(found, works, runs)


def _fixed(work: Work, varied: Sequence[str]) -> dict[str, str]:
    """The knobs that matter for a workload and that do not differ between rows."""
    usual = [
        "task",
        *(knob.name for knob in SHAPES),
        "precision",
        *(["tune", "optimizer"] if work.trains else []),
    ]
    names = dict.fromkeys((*usual, *work.recipe.turned()))
    shown = {name: work.recipe[name] for name in names if name not in varied}
    return {name: position for name, position in shown.items() if position != AUTO}


def _versions(library: str, works: Sequence[Work]) -> dict[str, str]:
    """Of torch, the model's library and those of the techniques."""
    names = {"hf": ("transformers",), FUNCTION: ()}.get(library, (library,))
    techniques = [technique for work in works for _, technique, _ in work.recipe.techniques()]
    needed = dict.fromkeys((*names, *(package for each in techniques for package in each.packages)))
    return {"torch": find_wheel().torch, **dict(_installed(tuple(needed)))}


def _installed(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


def _said(result: Result) -> str:
    return result.verdict


def sole(rows: Sequence[Row], number: int | None) -> Row:
    """The row of a number, or the only one; UsageError names what there is."""
    if number is None and len(rows) == 1:
        return rows[0]
    found = next((row for row in rows if row.number == number), None)
    if found is None:
        numbers = f"1 to {len(rows)}" if len(rows) > 1 else "1" if rows else "none"
        asked = "the table has several rows" if number is None else f"there is no row {number}"
        raise UsageError(f"{asked}: name one with --cell N ({numbers})")
    return found
