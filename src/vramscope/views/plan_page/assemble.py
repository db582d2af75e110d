"""The page put together from a plan."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from string import Template

from vramscope.planning.plan import Plan, Row
from vramscope.views import plan_words as say
from vramscope.views.page import files
from vramscope.views.page.markup import Markup, element, items, joined, pairs, section
from vramscope.views.plan_page.bars import bars_html
from vramscope.views.plan_page.explained import explained_html
from vramscope.views.plan_page.heat import heat_html
from vramscope.views.plan_page.searches import budget_html, cheapest_html, fits_html
from vramscope.views.plan_page.table import table_html
from vramscope.views.plan_rows import MEMORY, by_card

_LINKS = (
    *(("fit", "Largest"), ("cheapest", "Smallest card"), ("budget", "Budget"), ("matrix", "Matrix")),
    *(("bars", "Bars"), ("rows", "Rows"), ("explained", "Explained"), ("basis", "Basis")),
)


def plan_page(plan: Plan, sort: str = MEMORY) -> str:
    """The whole page, ready to be written to a file in UTF-8.  It is for people; its markup is no interface."""
    parts = (
        fits_html(plan),
        cheapest_html(plan),
        budget_html(plan),
        heat_html(plan),
        bars_html(plan, sort),
        table_html(plan, sort),
        explained_html(plan, sort),
        section("basis", "What it rests on", items(say.notes(plan), "basis")),
    )
    body, style = joined(parts), _style()
    page = Template(files.text_of("plan.html")).substitute(
        policy=escape(_policy(style)),
        title=escape(plan.source),
        style=style,
        links=joined(
            element("a", text, href=f"#{name}") for name, text in _LINKS if f'<section id="{name}"' in body
        ),
        summary=joined(_summary(plan)),
        body=body,
    )
    return page.encode("utf-8", "replace").decode()  # a module's name may hold bytes that are no UTF-8


def _style() -> str:
    return files.text_of("page.css") + files.text_of("plan.css")


def _policy(style: str) -> str:
    """This style applies, nothing is fetched and no script runs."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _summary(plan: Plan) -> Iterable[Markup]:
    yield element("h1", say.subject(plan), id="title")
    searched = plan.fits or plan.cheapest or plan.budget
    for sentence, rows in (
        zip(say.verdicts(plan), by_card(plan).values(), strict=True) if not searched else ()
    ):
        yield element("p", sentence, class_=f"verdict {_class_of(rows)}")
    yield element("p", " · ".join(filter(None, [say.ran_on(plan), say.effort(plan)])), class_="origin")
    asked, assumed = say.conditions(plan)
    told = [
        (
            "Cards" if len(plan.cards) > 1 else "Card",
            " · ".join(say.card_sentence(plan, each) for each in plan.cards),
        ),
        ("Held", say.used_sentence(plan)),
        ("With", asked),
        ("By default", assumed),
    ]
    yield pairs(((term, text, "") for term, text in told if text), "conditions")


def _class_of(rows: list[Row]) -> str:
    fitting = sum(row.result.fits for row in rows)
    return "fits" if fitting == len(rows) else "unsure" if fitting else "does-not-fit"
