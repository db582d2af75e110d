"""The answers of `explain`, each to be unfolded."""

from __future__ import annotations

from collections.abc import Sequence

from vramscope.analysis.explain.finding import Evidence, Finding, Remedy
from vramscope.units import format_bytes, format_change
from vramscope.views import words
from vramscope.views.page.markup import Markup, element, items, joined, pairs, paragraphs, section


def findings_html(findings: Sequence[Finding], unknown: Sequence[str]) -> Markup:
    """The answers, the first of them open, and what cannot be told."""
    answers = [_finding(each, opened=not number) for number, each in enumerate(findings)]
    return section("explained", "Explained", *answers, paragraphs(unknown, "note"))


def _finding(finding: Finding, *, opened: bool) -> Markup:
    head = element(
        "summary",
        element("h3", finding.question),
        element("span", format_bytes(finding.stake_bytes), class_="stake"),
    )
    return element(
        "details",
        head,
        element("p", finding.answer),
        pairs(map(_evidence, finding.evidence)),
        items(map(_remedy, finding.remedies)),
        _places(finding.where),
        class_=f"finding {finding.severity}",
        open=opened,
    )


def _evidence(each: Evidence) -> tuple[str, str, str]:
    size = (format_change if each.size_bytes < 0 else format_bytes)(each.size_bytes)
    return each.label, size, each.note


def _remedy(each: Remedy) -> Markup:
    told = joined([f"{each.change}: ", element("b", _saved(each)), " "])
    tail = f"{each.of}, {each.known}" + (f"; {each.note}" if each.note else "")
    return joined([told, element("small", tail)])


def _saved(each: Remedy) -> str:
    if each.saved_bytes is None:
        return words.UNKNOWN
    return ("at least " if each.at_least else "") + format_change(-each.saved_bytes)


def _places(where: Sequence[str]) -> Markup:
    return element("p", *(element("code", each) for each in where), class_="where") if where else Markup()
