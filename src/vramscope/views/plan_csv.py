"""A plan as a table for spreadsheets and data frames: one line per row of the matrix (docs/plan.md)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping

from vramscope.planning.plan import Plan, Row
from vramscope.planning.result import Failure
from vramscope.run.categories import CATEGORIES
from vramscope.views.plan_rows import ORDER, change_of_allocated, change_of_total, in_order

Cell = str | int | None

BEFORE = ("row", "card", "baseline")
AFTER = (
    *(
        "verdict",
        "why",
        "capacity_bytes",
        "process_total_bytes",
        "peak_reserved_bytes",
        "peak_allocated_bytes",
    ),
    *("outside_bytes", "process_total_change_bytes", "peak_allocated_change_bytes"),
    *("peak_phase", "peak_step", "peak_module"),
    *(f"{category}_bytes" for category in CATEGORIES),
    *("parameters", "trained", "retries", "failed_phase", "failed_step", "failed_module", "requested_bytes"),
    *("because", "price", "fixed"),
)
"""Between the two stand the varied knobs, in their order."""


def plan_csv(plan: Plan) -> str:
    """The table with a line of headings, in the order of the matrix; what is not known is empty."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow((*BEFORE, *plan.varied, *AFTER))
    table.writerows(tuple(_cells(plan, row)) for row in in_order(plan.rows, ORDER))
    return text.getvalue()


def _cells(plan: Plan, row: Row) -> Iterator[Cell]:
    result = row.result
    yield from (row.number, row.card, int(row.baseline))
    yield from (row.turned.get(knob) for knob in plan.varied)
    yield from (result.verdict, result.why, result.capacity_bytes, result.process_total_bytes)
    yield from (result.peak_reserved_bytes, result.peak_allocated_bytes, result.outside_bytes)
    yield from (change_of_total(plan, row), change_of_allocated(plan, row))
    yield from (result.phase, result.step, result.module)
    yield from _categories(result.categories)
    yield from (result.parameters, result.trained, result.retries)
    yield from _failure(result.failure)
    yield from ("; ".join(row.why), "; ".join(row.price), _positions(plan.fixed))


def _categories(held: Mapping[str, int]) -> Iterator[Cell]:
    """A category that holds nothing is 0, but nothing is known of any where nothing was followed."""
    yield from (held.get(category, 0) if held else None for category in CATEGORIES)


def _failure(failure: Failure | None) -> Iterator[Cell]:
    if failure is None:
        yield from (None, None, None, None)
    else:
        yield from (failure.phase, failure.step, failure.module, failure.requested_bytes)


def _positions(knobs: Mapping[str, str]) -> str:
    return " ".join(f"{knob}={value}" for knob, value in knobs.items())
