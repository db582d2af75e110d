"""The rows of a plan as views have them: sorted, by card, and the same combination on several cards together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vramscope.cards import find_card
from vramscope.errors import CardError
from vramscope.planning.plan import Plan, Row
from vramscope.planning.result import CANNOT_RUN, DOES_NOT_FIT, FAILED, FITS, Result

MEMORY, ORDER = "memory", "order"
"""The orders of rows: what fits first and the least memory first in each group; or as the matrix has them."""
_GROUPS = (FITS, DOES_NOT_FIT, FAILED, CANNOT_RUN)
_UNKNOWN = 1 << 62


@dataclass(frozen=True, slots=True)
class Combination:
    """One combination of the varied knobs, with its row on each card."""

    turned: Mapping[str, str]
    rows: Mapping[str, Row]
    """By card, in the order of the plan."""


def in_order(rows: Iterable[Row], order: str = MEMORY) -> list[Row]:
    """The rows in one of the two orders."""
    return sorted(rows, key=(lambda row: row.number) if order == ORDER else _by_memory)


def by_card(plan: Plan, order: str = MEMORY) -> dict[str, list[Row]]:
    """The rows of each card, in the order of the plan's cards."""
    cards = dict.fromkeys((*plan.cards, *(row.card for row in plan.rows)))
    found = {card: in_order((row for row in plan.rows if row.card == card), order) for card in cards}
    return {card: rows for card, rows in found.items() if rows}


def combinations(plan: Plan, order: str = MEMORY) -> list[Combination]:
    """The combinations, those that fit on the most cards first and of them the least memory first."""
    found: dict[tuple[tuple[str, str], ...], dict[str, Row]] = {}
    for row in in_order(plan.rows, ORDER):
        found.setdefault(tuple(row.turned.items()), {})[row.card] = row
    told = [Combination(dict(turned), rows) for turned, rows in found.items()]
    return told if order == ORDER else sorted(told, key=_most_cards)


def baseline_of(plan: Plan, card: str) -> Row | None:
    """The row that the others of a card are held against."""
    return next((row for row in plan.rows if row.card == card and row.baseline), None)


def capacity_of(plan: Plan, card: str) -> int | None:
    """What a process may take of a card (bytes); None where nothing tells."""
    for result in _results(plan, card):
        return result.capacity_bytes
    try:
        return find_card(card).memory_bytes - plan.used_bytes
    except CardError:
        return None


def largest(result: Result) -> tuple[str, int] | None:
    """The category that holds most of the peak of allocated, and its bytes; None where nothing was followed."""
    return max(result.categories.items(), key=lambda item: item[1], default=None)


def change_of_total(plan: Plan, row: Row) -> int | None:
    """How many bytes more than the baseline the process takes; None for the baseline and where it is not known."""
    baseline = baseline_of(plan, row.card)
    if baseline is None or row.baseline:
        return None
    return _difference(row.result.process_total_bytes, baseline.result.process_total_bytes)


def change_of_allocated(plan: Plan, row: Row) -> int | None:
    """The same of the peak of allocated."""
    baseline = baseline_of(plan, row.card)
    if baseline is None or row.baseline:
        return None
    return _difference(row.result.peak_allocated_bytes, baseline.result.peak_allocated_bytes)


def parts_of(result: Result) -> list[tuple[str, int]]:
    """What the process total consists of: categories, then `cached` and `outside`; they sum up to it.

    `cached` is what the peak of reserved holds beyond that of allocated.  Empty where a figure is not known."""
    total, reserved, allocated = (
        result.process_total_bytes,
        result.peak_reserved_bytes,
        result.peak_allocated_bytes,
    )
    if total is None or reserved is None or allocated is None:
        return []
    held = list(result.categories.items()) or [("allocated", allocated)]
    return [*held, ("cached", reserved - allocated), ("outside", total - reserved)]


def _results(plan: Plan, card: str) -> Iterable[Result]:
    yield from (row.result for row in plan.rows if row.card == card)
    yield from (fit.ends for fit in plan.fits if fit.card == card and fit.ends)
    yield from (fit.fails for fit in plan.fits if fit.card == card and fit.fails)


def _difference(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one - other


def _by_memory(row: Row) -> tuple[int, int, int]:
    result = row.result
    group = _GROUPS.index(result.verdict) if result.verdict in _GROUPS else len(_GROUPS)
    total = result.process_total_bytes
    return group, _UNKNOWN if total is None else total, row.number


def _most_cards(combination: Combination) -> tuple[int, tuple[int, int, int]]:
    rows = combination.rows.values()
    return -sum(row.result.fits for row in rows), min(map(_by_memory, rows))
