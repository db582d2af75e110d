"""The answers of `explain` for the terminal: each a question, a paragraph, the figures behind it, and what helps."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.text import Text

from vramscope.analysis.explain.finding import ALLOCATED, WASTE, WRONG, Evidence, Finding, Remedy
from vramscope.units import format_bytes, format_change
from vramscope.views.paragraphs import INDENT, TextOptions, finished, wrapped
from vramscope.views.tables import printable

_LABEL = 18
_SIZE = 10
_NARROW = 66
"""Below this width a figure's note stands under it, not beside it."""
_MARKS = {WRONG: ("looks wrong: ", "bold red"), WASTE: ("could be less: ", "bold yellow")}


def explain_text(findings: Sequence[Finding], unknown: Sequence[str], options: TextOptions) -> Text:
    """All answers in their order, then what the run cannot tell."""
    lines = [Text()]
    for finding in findings:
        lines += [*_finding(finding, options), Text()]
    if not findings:
        lines += [*wrapped("", "there is nothing to explain in this run", options), Text()]
    for sentence in unknown:
        lines += wrapped("not known", sentence, options)
    return finished(lines if unknown else lines[:-1], options)


def _finding(finding: Finding, options: TextOptions) -> list[Text]:
    mark, style = _MARKS.get(finding.severity, ("", "bold"))
    lines = wrapped("", mark + finding.question, options, style=style)
    lines += wrapped("", finding.answer, options)
    for each in finding.evidence:
        lines += _evidence(each, options)
    for remedy in finding.remedies:
        lines += _remedy(remedy, options)
    return lines


def _evidence(evidence: Evidence, options: TextOptions) -> list[Text]:
    """A figure, with its note beside it where there is room."""
    told = format_change if evidence.is_change else format_bytes
    head = f"{INDENT * 2}{evidence.label:<{_LABEL}}{told(evidence.size_bytes):>{_SIZE}}"
    if not evidence.note:
        return [Text(head)]
    if options.width < _NARROW:
        return [Text(head), *_hanging(INDENT * 3, INDENT * 3, evidence.note, options, "dim")]
    return _hanging(f"{head}{INDENT}", " " * (len(head) + len(INDENT)), evidence.note, options, "dim")


def _remedy(remedy: Remedy, options: TextOptions) -> list[Text]:
    arrow = "> " if options.ascii_only else "→ "
    note = f"; {remedy.note}" if remedy.note else ""
    sentence = f"{remedy.change}: {_saved(remedy)}{note}"
    return _hanging(f"{INDENT * 2}{arrow}", INDENT * 3, sentence, options, "green")


def _saved(remedy: Remedy) -> str:
    """``−90.0 MiB of peak allocated (from the recorded bytes)``."""
    if remedy.saved_bytes is None:
        return "not known until a run with it is given (--with RUN)"
    if remedy.saved_bytes == 0:
        return f"{remedy.of} stays as it is ({remedy.known})"
    least = "at least " if remedy.at_least else ""
    of = "" if remedy.of == ALLOCATED else f" of {remedy.of}"
    return f"{least}{format_change(-remedy.saved_bytes)}{of} ({remedy.known})"


def _hanging(head: str, indent: str, sentence: str, options: TextOptions, style: str) -> list[Text]:
    """The sentence after its head, its further lines under an indent."""
    width = max(20, options.width - len(indent))
    first, *rest = textwrap.wrap(printable(sentence), width, break_on_hyphens=False) or [""]
    return [Text.assemble(head, (first, style)), *(Text.assemble(indent, (line, style)) for line in rest)]
