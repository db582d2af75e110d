"""What the searches came to: the largest value, the smallest card, the ways to get by with a budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vramscope.planning.plan import Cheapest, Fit, Plan, Way
from vramscope.units import format_bytes
from vramscope.views import plan_words as say
from vramscope.views.page.markup import Markup, element, items, joined, paragraphs, section
from vramscope.views.plan_page.names import verdict_class


def fits_html(plan: Plan) -> Markup:
    """The largest values, each with its proof."""
    return section("fit", "The largest that runs", *(_fit(plan, each) for each in plan.fits))


def _fit(plan: Plan, fit: Fit) -> Markup:
    sentence = f"{_for(plan, fit.card, fit.turned)}{say.fit_sentence(fit)}"
    kind = "does-not-fit" if fit.largest is None else "fits"
    tried = [
        element("li", element("b", f"{value:,}"), f" {verdict}", class_=f"says {verdict.replace(' ', '-')}")
        for value, verdict in sorted(fit.tried)
    ]
    return joined(
        [
            element("p", sentence, class_=f"verdict {kind}"),
            paragraphs(filter(None, [say.fit_conditions(fit)]), "note"),
            element("ul", *tried, class_="legend tried") if tried else Markup(),
        ]
    )


def cheapest_html(plan: Plan) -> Markup:
    """The smallest cards, with those that were tried before."""
    return section("cheapest", "The smallest card", *(_cheapest(plan, each) for each in plan.cheapest))


def _cheapest(plan: Plan, found: Cheapest) -> Markup:
    sentence = f"{_for(plan, '', found.turned)}{say.cheapest_sentence(found)}"
    kind = "fits" if found.card else "does-not-fit"
    return joined(
        [element("p", sentence, class_=f"verdict {kind}"), items(map(say.candidate, found.tried), "basis")]
    )


def budget_html(plan: Plan) -> Markup:
    """The ways, least intrusive first."""
    budget = plan.budget
    if budget is None:
        return Markup()
    kind = "fits" if budget.asked.fits else "unsure" if budget.ways else "does-not-fit"
    nearest = (
        [element("h3", "The nearest that does not fit"), _ways(budget.nearest)] if budget.nearest else []
    )
    sentence = element("p", say.budget_sentence(budget), class_=f"verdict {kind}")
    return section("budget", "Within the budget", sentence, _ways(budget.ways), *nearest)


def _ways(ways: Sequence[Way]) -> Markup:
    return element("ol", *map(_way, ways), class_="ways") if ways else Markup()


def _way(way: Way) -> Markup:
    return element("li", *_parts(way))


def _parts(way: Way) -> Iterator[Markup]:
    yield element("b", say.settings(way.turned))
    total = way.result.process_total_bytes
    size = "" if total is None else f" {format_bytes(total)}"
    yield element("span", f"{way.result.verdict}{size}", class_=f"says {verdict_class(way.result)}")
    yield element("span", say.maths(way.maths), class_=f"maths m{way.maths}")
    yield items((f"costs: {price}" for price in way.price), "costs")


def _for(plan: Plan, card: str, turned: Mapping[str, str]) -> str:
    told = ", ".join(
        filter(None, [card if len(plan.cards) > 1 else "", say.position(plan, turned) if turned else ""])
    )
    return f"{told}: " if told else ""
