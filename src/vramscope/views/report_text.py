"""A report for the terminal: the verdict, a table of the steps, and what it rests on.

`report_text` lays the lines out for a width; colours are styles on its pieces, so the
same lines serve a terminal, a pipe and a test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from vramscope.run.report import DOES_NOT_FIT, FITS, Report, Step
from vramscope.units import format_gib
from vramscope.views import words
from vramscope.views.paragraphs import (
    INDENT,
    LABEL,
    TextOptions,
    command_lines,
    glued,
    joined,
    labelled,
    wrapped,
)

_COLUMN = 11
_ROOM_FOR_A_GAP = 50
"""Narrower tables have the first and the last step side by side."""
_LISTED = 5
"""So many assumed values and the like are listed; the JSON has all."""
_METRICS = ("allocated", "reserved", "process_total")
_VERDICT_STYLES = {FITS: "bold green", DOES_NOT_FIT: "bold red"}


def report_text(report: Report, options: TextOptions | None = None) -> Text:
    """The whole report, each line indented by two, no wider than asked for."""
    layout = options or TextOptions()
    blocks = [_headline(report, layout), _table(report, layout), _facts(report, layout)]
    return joined(blocks, layout)


def bar(part: int, whole: int, width: int, *, ascii_only: bool = False) -> str:
    """A bar of `part` in `whole`, in eighths of a character."""
    eighths = round(min(part / whole, 1.0) * width * 8) if whole > 0 else 0
    if ascii_only:
        return "#" * round(eighths / 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def chosen_steps(steps: Sequence[Step], room: int) -> list[Step | None]:
    """The steps that have a column: all, or the first and the last ones with a gap (None) between."""
    if len(steps) <= room:
        return list(steps)
    return [steps[0], None, *steps[len(steps) - max(room - 2, 1) :]]


def _headline(report: Report, layout: TextOptions) -> list[Text]:
    style = _VERDICT_STYLES.get(report.verdict, "bold yellow")
    lines = wrapped("", words.verdict(report), layout, style=style)
    for sentence in filter(None, [words.steadiness(report)]):
        lines += wrapped("", sentence, layout)
    for sentence in words.cautions(report):
        lines += wrapped("", sentence, layout, style="yellow")
    return lines


def _table(report: Report, layout: TextOptions) -> list[Text]:
    if not report.steps:
        return []
    room = max(2, min(6, (layout.width - len(INDENT) - LABEL - 12) // _COLUMN))
    columns = [step for step in chosen_steps(report.steps, room) if step or layout.width >= _ROOM_FOR_A_GAP]
    head = _cells(words.unit(report), (_heading(report, step) for step in columns))
    rows = {metric: _row(metric, columns, report, layout) for metric in _METRICS}
    return [
        Text(head.rstrip(), style="dim"),
        rows["allocated"],
        rows["reserved"],
        *_outside(report, layout),
        rows["process_total"],
        *_cards(report, layout),
    ]


def _row(metric: str, columns: Sequence[Step | None], report: Report, layout: TextOptions) -> Text:
    """One metric over the steps, and a bar of its peak in the card's memory."""
    values = [getattr(step.peaks, f"{metric}_bytes") if step else None for step in columns]
    shown = [
        words.scaled(value, report) if step else "…" for step, value in zip(columns, values, strict=True)
    ]
    cells = _cells(metric.replace("_", " "), shown)
    top = getattr(report.peaks, f"{metric}_bytes")
    room = min(24, layout.width - len(cells) - 3)
    if not top or room < 6:
        return Text(cells)
    drawn = bar(top, words.memory_bytes(report), room, ascii_only=layout.ascii_only)
    return Text.assemble(cells, (f"   {drawn}" if drawn else "", "cyan"))


def _cells(label: str, values: Iterable[str]) -> str:
    return f"{INDENT}{label:<{LABEL - 2}}" + "".join(f"{value:>{_COLUMN}}" for value in values)


def _heading(report: Report, step: Step | None) -> str:
    if step is None:
        return ""
    if step.complete:
        return f"step {step.step}"
    if report.stopped.partial:
        return f"step {step.step} cut"
    return "after" if any(each.complete for each in report.steps) else "whole run"


def _outside(report: Report, layout: TextOptions) -> list[Text]:
    outside = report.outside
    interval = f"({words.scaled(outside.low_bytes, report)} to {words.scaled(outside.high_bytes, report)})"
    told = ", ".join(filter(None, [outside.how, f"{outside.loading} loading" if outside.loading else ""]))
    value = f"{words.scaled(outside.bytes, report):>{_COLUMN - 2}}"
    if outside.how.startswith("measured ("):  # not the "measured context" of a prediction
        return wrapped("outside", f"{value} {interval} context, kernels, libraries: {outside.how}", layout)
    return wrapped("outside", f"{value} {interval} context and loaded kernels, modelled ({told})", layout)


def _cards(report: Report, layout: TextOptions) -> list[Text]:
    if len(report.devices) < 2:
        return []
    totals = (
        f"cuda:{each.device} {words.scaled(each.peaks.process_total_bytes, report)}"
        for each in report.devices
    )
    return wrapped("by card", " · ".join(totals), layout)


def _facts(report: Report, layout: TextOptions) -> list[Text]:
    return [*labelled((*layout.facts, *_labelled(report)), layout), *command_lines(layout)]


def _labelled(report: Report) -> Iterable[tuple[str, str]]:
    oom = report.oom
    if oom is not None and not oom.caught:
        yield "asked for", words.asked(oom)
        yield "held then", words.held(oom)
    yield "on", glued(" · ".join(_ran_on(report)))
    if report.assumed:
        total = sum(item.count or 1 for item in report.assumed)
        yield "assumed", f"{words.count(total, 'value')}: {_listed(map(words.assumed, report.assumed))}"
    if report.modelled:
        yield "modelled", _listed(map(words.modelled, report.modelled))
    missing = [*map(words.figure, report.uncounted), *map(words.unsimulated, report.unsimulated)]
    if missing:
        yield "not counted", _listed(missing)
    for item in report.waiting:
        note = f" ({item.note})" if item.note else ""
        yield "waiting", f"a loop at {item.where or 'an unknown place'} waited on the card for ever{note}"


def _ran_on(report: Report) -> list[str]:
    on = report.versions
    parts = [f"torch {on.torch or words.UNKNOWN}", f"CUDA {on.cuda or words.UNKNOWN}"]
    parts += [f"cuDNN {on.cudnn or words.UNKNOWN}", f"allocator: {on.allocator or words.UNKNOWN}"]
    if report.capacity_bytes is None:
        parts.append("memory unlimited")
    elif report.capacity_bytes != report.card.memory_bytes:
        parts.append(f"memory {format_gib(report.capacity_bytes)} GiB as given")
    return [*parts, words.stopped(report.stopped), *filter(None, [words.pace(report)])]


def _listed(sentences: Iterable[str]) -> str:
    every = list(sentences)
    more = len(every) - _LISTED
    return "; ".join(every[:_LISTED]) + (f"; and {more} more (--json has all)" if more > 0 else "")
