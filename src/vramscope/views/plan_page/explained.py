"""What moved in each row against the baseline, why, and what its techniques cost."""

from __future__ import annotations

from collections.abc import Iterator

from vramscope.planning.plan import Plan, Row
from vramscope.run.categories import plural
from vramscope.units import format_change
from vramscope.views import plan_words as say
from vramscope.views.page.markup import Markup, element, items, joined, section
from vramscope.views.plan_page.names import row_id, verdict_class, why_id
from vramscope.views.plan_rows import combinations


def explained_html(plan: Plan, order: str) -> Markup:
    """An article for each row, those of the same combination one after the other."""
    rows = [row for each in combinations(plan, order) for row in each.rows.values()]
    return section("explained", "Explained", *(_article(plan, row) for row in rows))


def _article(plan: Plan, row: Row) -> Markup:
    card = f"{row.card} · " if len(plan.cards) > 1 else ""
    link = element("a", f"row {row.number}", href=f"#{row_id(row)}")
    head = element("h3", link, f" · {card}{say.position(plan, row.turned)}")
    stake = element("span", _stake(row), class_=f"says {verdict_class(row.result)}")
    return element("article", element("header", head, stake), *_body(plan, row), id=why_id(row), class_="why")


def _stake(row: Row) -> str:
    """The verdict; the reason is told below."""
    return row.result.verdict if row.result.process_total_bytes is None else say.outcome(row.result)


def _body(plan: Plan, row: Row) -> Iterator[Markup]:
    if sentence := say.trouble(row.result):
        yield element("p", sentence, class_="trouble")
    place = say.peak_place(row.result)
    parts = (
        say.consists(row.result)
        if row.baseline or len(plan.rows) == 1
        else say.changed(plan, row).split(":")[0]
    )
    if row.baseline and len(plan.rows) > 1:
        parts = f"the baseline: {parts}" if parts else "the baseline"
    if told := "; ".join(filter(None, [parts, place and f"highest {place}"])):
        yield element("p", told)
    yield _moved(row)
    yield items(say.why(row))
    yield items((f"costs: {price}" for price in say.price(row)), "costs")


def _moved(row: Row) -> Markup:
    """What each category holds more or less, the weightiest first."""
    changes = [
        element(
            "li",
            element("i", class_=f"swatch c-{name}"),
            f"{plural(name)} ",
            element("b", format_change(size)),
        )
        for name, size in row.changes.items()
    ]
    return element("ul", joined(changes), class_="legend moved") if changes else Markup()
