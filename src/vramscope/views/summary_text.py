"""A run for the terminal: the report, what the peak is made of, and what else was recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from rich.text import Text

from vramscope.analysis.peak import Peak, Share
from vramscope.analysis.summary import Recorded, Summary
from vramscope.run.categories import plural
from vramscope.run.report import Report
from vramscope.units import format_bytes, format_in, unit_for
from vramscope.views import words
from vramscope.views.figures import moment_in_words
from vramscope.views.paragraphs import GLUE, TextOptions, finished, wrapped
from vramscope.views.report_text import report_text

_SMALLEST = 0.005
"""A category below this share of the peak is told with others."""
_NO_HISTORY = "this run has no history of its memory (nothing was put on a card, or it was recorded without)"
_LISTED = 4
"""So many other processes and cards are named."""


def summary_text(found: Summary, report: Report | None, options: TextOptions) -> Text:
    """The report with what the trace adds; without a report, as for a snapshot, the trace alone."""
    facts = tuple(_facts(found, report))
    if report is not None:
        return report_text(report, replace(options, facts=(*options.facts, *facts)))
    lines = [*wrapped("", headline(found), options, style="bold"), Text()]
    for label, sentence in (*facts, *_history(found)):
        lines += wrapped(label, sentence, options)
    return finished([Text(), *lines], options)


def opening_text(found: Summary, wanted: Collection[str], layout: TextOptions) -> list[Text]:
    """What comes before the views that were asked for: which trace they are of, or why there are none."""
    if found.trace is None:
        flags = ", ".join(f"--{name}" for name in wanted)
        return [
            finished(wrapped("", f"{_NO_HISTORY}, so there is no {flags}", layout, style="yellow"), layout)
        ]
    told = others_in_words(found.trace, found.others)
    return [finished(wrapped("", told, layout, style="dim"), layout)] if told else []


def headline(found: Summary) -> str:
    """What a run without a report comes to, in one sentence."""
    name = f"{found.name} ({found.origin})" if found.name else found.origin
    if found.peak is None or found.trace is None:
        return f"{name}: nothing was allocated"
    highest = f"allocated peak {format_bytes(found.trace.peak_allocated_bytes)} {moment_in_words(found.peak)}"
    reserved = f"reserved reaches {format_bytes(found.trace.peak_reserved_bytes)}"
    return f"{name}: {highest.rstrip()}; {reserved}"


def at_the_peak(found: Peak) -> str:
    """``activations 6.88 · workspaces 0.35 · … · cached 1.21 GiB``."""
    unit = unit_for(found.reserved_bytes)
    told = [
        f"{plural(each.name)} {format_in(each.size_bytes, unit)}"
        for each in _larger(found.categories, found.allocated_bytes)
    ]
    rest = found.allocated_bytes - sum(
        each.size_bytes for each in _larger(found.categories, found.allocated_bytes)
    )
    if rest:
        told.append(f"other {format_in(rest, unit)}")
    told.append(f"cached {format_in(found.cached_bytes, unit)} {unit}")
    return " · ".join(each.replace(" ", GLUE) for each in told)


def others_in_words(trace: Recorded, others: Iterable[Recorded]) -> str | None:
    """Which process and card is shown, and which else there are; None if there is but one."""
    every = list(others)
    if not every:
        return None
    named = [f"{_place(each)} ({format_bytes(each.peak_allocated_bytes)})" for each in every[:_LISTED]]
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return f"{_place(trace)}; also recorded: {', '.join(named)}{more} (--device N, --process PID)"


def _facts(found: Summary, report: Report | None) -> Iterator[tuple[str, str]]:
    if found.peak is not None:
        yield "at the peak", at_the_peak(found.peak)
    if found.trace is not None and (told := others_in_words(found.trace, found.others)):
        yield "shown", told


def _history(found: Summary) -> Iterator[tuple[str, str]]:
    steps = f", {words.count(found.steps, 'step')}" if found.steps else ""
    if found.trace is not None:
        yield "recorded", f"{found.events:,} events{steps}"
    if not found.whole and not found.notes:
        yield "not known", "what was there before the first event, and gone at the end"
    for note in found.notes:
        yield "not known", note


def _larger(shares: Iterable[Share], whole: int) -> list[Share]:
    return [each for each in shares if each.size_bytes >= _SMALLEST * whole]


def _place(trace: Recorded) -> str:
    return f"process {trace.process} on cuda:{trace.device}"
