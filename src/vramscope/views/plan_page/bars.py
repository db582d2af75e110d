"""What each row's process total consists of, as stacked bars with the card's memory as a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vramscope.planning.plan import Plan, Row
from vramscope.run.categories import CATEGORIES, plural
from vramscope.run.report import UNLIMITED_BYTES
from vramscope.units import format_bytes
from vramscope.views import plan_words as say
from vramscope.views import words
from vramscope.views.page.markup import Markup, element, joined, section
from vramscope.views.plan_page.names import row_id, short_verdict, verdict_class
from vramscope.views.plan_rows import by_card, capacity_of, parts_of

_MOST = 3
"""A bar ends at so many times the card's memory, and says how far it goes on."""
_REST = ("allocated", "cached", "outside")
_NOTES = {
    "cached": "cached: the peak of reserved beyond that of allocated",
    "outside": "outside the allocator: the context, kernels, libraries",
}


def bars_html(plan: Plan, order: str) -> Markup:
    """For each card its rows; nothing where nothing ran."""
    groups = [_group(plan, card, rows) for card, rows in by_card(plan, order).items()]
    drawn = joined(groups)
    return section("bars", "What it consists of", _legend(plan), drawn) if drawn else Markup()


def _group(plan: Plan, card: str, rows: Sequence[Row]) -> Markup:
    known = [row for row in rows if parts_of(row.result)]
    if not known:
        return Markup()
    capacity = _finite(capacity_of(plan, card))
    whole = _whole(known, capacity)
    lines = [_line(plan, row, whole, capacity) for row in known]
    return joined([element("h3", say.card_sentence(plan, card)), element("ol", *lines, class_="stacks")])


def _finite(capacity: int | None) -> int | None:
    return None if capacity is None or capacity >= UNLIMITED_BYTES // 2 else capacity


def _whole(rows: Iterable[Row], capacity: int | None) -> int:
    """What the whole width stands for."""
    highest = max(row.result.process_total_bytes or 0 for row in rows)
    return max(highest, 1) if capacity is None else max(min(highest, _MOST * capacity), capacity * 51 // 50)


def _line(plan: Plan, row: Row, whole: int, capacity: int | None) -> Markup:
    name = element(
        "a", element("b", str(row.number)), f" {say.position(plan, row.turned)}", href=f"#{row_id(row)}"
    )
    total = row.result.process_total_bytes or 0
    onward = " →" if total > whole else ""
    figure = element(
        "span",
        f"{words.gib(total)} GiB{onward} ",
        element("small", short_verdict(row.result)),
        class_="total",
    )
    return element("li", name, _bar(row, whole, capacity), figure, class_=verdict_class(row.result))


def _bar(row: Row, whole: int, capacity: int | None) -> Markup:
    pieces, at = [], 0
    for name, size in _drawn(row):
        end = min(at + size, whole)
        if end > at:
            told = element("title", f"{_named(name)} {format_bytes(size)}")
            pieces.append(_piece(name, at / whole, (end - at) / whole, told))
        at += size
    if capacity is not None:
        place = _percent(capacity / whole)
        pieces.append(element("line", x1=place, x2=place, y1="0", y2="100%", class_="capacity"))
    label = (
        f"row {row.number}: {', '.join(f'{_named(name)} {format_bytes(size)}' for name, size in _drawn(row))}"
    )
    return element("svg", *pieces, role="img", aria_label=label, width="100%", height="24", class_="stack")


def _piece(name: str, start: float, width: float, told: Markup) -> Markup:
    return element(
        "rect", told, x=_percent(start), width=_percent(width), y="4", height="16", class_=f"c-{name}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3f}%"


def _drawn(row: Row) -> list[tuple[str, int]]:
    """The same order in all bars."""
    order = {name: number for number, name in enumerate((*CATEGORIES, *_REST))}
    return sorted(
        ((name, size) for name, size in parts_of(row.result) if size > 0),
        key=lambda part: order.get(part[0], 99),
    )


def _named(name: str) -> str:
    return plural(name)


def _legend(plan: Plan) -> Markup:
    held = {name for row in plan.rows for name, size in parts_of(row.result) if size > 0}
    names = [name for name in (*CATEGORIES, *_REST) if name in held]
    entries = [
        element("li", element("i", class_=f"swatch c-{name}"), _NOTES.get(name, plural(name)))
        for name in names
    ]
    line = element("li", element("i", class_="swatch line-capacity"), "the card's memory")
    return element("ul", *entries, line, class_="legend")
