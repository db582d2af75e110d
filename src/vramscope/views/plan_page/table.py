"""All figures of the rows in a table."""

from __future__ import annotations

from collections.abc import Iterator

from vramscope.planning.plan import Plan, Row
from vramscope.run.categories import plural
from vramscope.units import format_in
from vramscope.views import plan_words as say
from vramscope.views.figures import change, phase, unit_of
from vramscope.views.page.markup import Markup, element, section
from vramscope.views.plan_page.names import row_id, verdict_class, why_id
from vramscope.views.plan_rows import by_card, change_of_total, largest

_NAME = "Every row with its figures"
_FIGURES = ("Allocated", "Reserved", "Process total", "Change")


def table_html(plan: Plan, order: str) -> Markup:
    """The rows of one card after those of the other; nothing where there are none."""
    rows = [_row(plan, row) for rows in by_card(plan, order).values() for row in rows]
    if not rows:
        return Markup()
    named = ["Row", *(["Card"] if len(plan.cards) > 1 else []), *plan.varied]
    heads = [element("th", name, scope="col") for name in named]
    unit = _unit(plan)
    heads += [element("th", f"{name}, {unit}", scope="col", class_="number") for name in _FIGURES]
    heads += [element("th", name, scope="col") for name in ("Verdict", "Allocated peaks in", "Mostly")]
    table = element(
        "table",
        element("caption", _NAME, class_="unseen"),
        element("thead", element("tr", *heads)),
        element("tbody", *rows),
        class_="data",
    )
    box = element("div", table, class_="scroll", tabindex="0", role="region", aria_label=_NAME)
    return section("rows", "Rows", box)


def _row(plan: Plan, row: Row) -> Markup:
    number = element("a", str(row.number), href=f"#{why_id(row)}")
    return element("tr", element("th", number, scope="row"), *_cells(plan, row), id=row_id(row))


def _cells(plan: Plan, row: Row) -> Iterator[Markup]:
    result, unit = row.result, _unit(plan)
    if len(plan.cards) > 1:
        yield element("td", row.card)
    yield from (element("td", row.turned.get(knob, "")) for knob in plan.varied)
    sizes = (result.peak_allocated_bytes, result.peak_reserved_bytes, result.process_total_bytes)
    yield from (element("td", say.in_unit(size, unit), class_="number") for size in sizes)
    yield element("td", _change(plan, row), class_="number")
    yield element("td", result.verdict, class_=f"says {verdict_class(result)}")
    place = ", ".join(
        filter(None, [phase(result.phase) if result.phase else "", say.part_of_model(result.module)])
    )
    yield element("td", place)
    most = largest(result)
    yield element("td", f"{plural(most[0])} {format_in(most[1], unit)}" if most else "")


def _change(plan: Plan, row: Row) -> str:
    if row.baseline and len(plan.rows) > 1:
        return "baseline"
    moved = change_of_total(plan, row)
    return "" if moved is None else change(moved, _unit(plan))


def _unit(plan: Plan) -> str:
    return unit_of(row.result.process_total_bytes for row in plan.rows)
