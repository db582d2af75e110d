"""What a report tells beside its verdict: the peaks of each step, and what the figures rest on."""

from __future__ import annotations

from collections.abc import Iterable

from vramscope.run.report import Report, Step
from vramscope.units import format_bytes
from vramscope.views import words
from vramscope.views.page.markup import Markup, element, items, joined, section

_FIGURES = ("Allocated", "Reserved", "Process total")


def steps_html(report: Report | None) -> Markup:
    """The peaks of each step."""
    if report is None or not report.steps:
        return Markup()
    heads = [element("th", name, scope="col", class_="number") for name in _FIGURES]
    head = element("tr", element("th", "Step", scope="col"), *heads, element("th", "Highest in", scope="col"))
    table = element(
        "table",
        element("caption", "Peaks of each step", class_="unseen"),
        element("thead", head),
        element("tbody", *map(_step, report.steps)),
        class_="data",
    )
    box = element("div", table, class_="scroll", tabindex="0", role="region", aria_label="Peaks of each step")
    return section("steps", "Steps", box)


def _step(step: Step) -> Markup:
    sizes = (step.peaks.allocated_bytes, step.peaks.reserved_bytes, step.peaks.process_total_bytes)
    return element(
        "tr",
        element("th", f"step {step.step}{'' if step.complete else ', not whole'}", scope="row"),
        *(element("td", words.size_text(size), class_="number") for size in sizes),
        element("td", step.phase.replace("_", " ")),
    )


def basis_html(report: Report | None) -> Markup:
    """What was assumed, modelled, not counted and not simulated."""
    if report is None:
        return Markup()
    return section("basis", "What it rests on", *(_group(*each) for each in _groups(report)))


def _groups(report: Report) -> Iterable[tuple[str, str, list[str]]]:
    modelled = [_outside(report), *map(words.modelled, report.modelled)]
    yield "Assumed", "values that the program read back from the card", [*map(words.assumed, report.assumed)]
    yield "Modelled", "from a model instead of the real code", modelled
    yield "Not counted", "missing from the figures", [*map(words.figure, report.uncounted)]
    unsimulated = [*map(words.unsimulated, report.unsimulated)]
    yield "Not simulated", "calls that the virtual card answers with an error", unsimulated
    yield (
        "Waiting",
        "loops that waited on the card for ever",
        [_waiting(each.where, each.note) for each in report.waiting],
    )
    yield "Unverified", "figures of the card that no source confirms", list(report.card.unverified)


def _outside(report: Report) -> str:
    outside = report.outside
    between = f"{format_bytes(outside.low_bytes)} to {format_bytes(outside.high_bytes)}"
    note = f"; {outside.note}" if outside.note else ""
    return f"outside the allocator: {format_bytes(outside.bytes)} ({between}), {outside.how}{note}"


def _waiting(where: str | None, note: str | None) -> str:
    return f"at {where or 'an unknown place'}" + (f" ({note})" if note else "")


def _group(name: str, what: str, sentences: list[str]) -> Markup:
    if not sentences:
        return Markup()
    return joined([element("h3", f"{name} ", element("small", what)), items(sentences, "basis")])
