"""The head of the page: the program, the verdict, and the key figures."""

from __future__ import annotations

from collections.abc import Iterable

from vramscope.analysis.summary import Summary
from vramscope.run.report import DOES_NOT_FIT, FITS, Report
from vramscope.run.run import IMPORTED, Run
from vramscope.units import format_bytes
from vramscope.views import words
from vramscope.views.page.markup import Markup, element, joined, pairs, paragraphs

_VERDICTS = {FITS: "fits", DOES_NOT_FIT: "does-not-fit"}


def title_of(run: Run) -> str:
    """What the run was made from."""
    program = " ".join(run.report.program) if run.report else ""
    return run.name or program or "a run without a name"


def summary_html(run: Run, found: Summary) -> Markup:
    """All of it."""
    report = run.report
    return joined(
        [
            element("h1", title_of(run), id="title"),
            _verdict(report) if report else Markup(),
            paragraphs([" · ".join(_origin(run, found))], "origin"),
            pairs(_report_figures(report) if report else _recorded_figures(found), "figures"),
            paragraphs(found.notes, "caution"),
        ]
    )


def _verdict(report: Report) -> Markup:
    steadiness, oom = words.steadiness(report), report.oom
    trouble = (
        []
        if oom is None or oom.caught
        else [f"asked for {words.asked(oom)}", f"held then: {words.held(oom)}"]
    )
    return joined(
        [
            element("p", words.verdict(report), class_=f"verdict {_VERDICTS.get(report.verdict, 'unsure')}"),
            paragraphs([steadiness] if steadiness else [], "steadiness"),
            paragraphs(words.cautions(report), "caution"),
            paragraphs(trouble, "oom"),
        ]
    )


def _origin(run: Run, found: Summary) -> Iterable[str]:
    report = run.report
    if run.origin == IMPORTED:
        yield "imported from a snapshot of PyTorch's allocator, which knows no card"
    else:
        yield f"{run.origin} for {words.card_name(report)}" if report else run.origin
    if report is not None:
        versions = report.versions
        yield f"torch {versions.torch or words.UNKNOWN}"
        yield f"CUDA {versions.cuda or words.UNKNOWN}"
        yield f"cuDNN {versions.cudnn or words.UNKNOWN}"
        yield f"allocator: {versions.allocator or words.UNKNOWN}"
        yield words.stopped(report.stopped)
    if found.events:
        yield f"{found.events:,} events"


def _report_figures(report: Report) -> Iterable[tuple[str, str, str]]:
    """The peaks, in one unit; they need not fall on one moment."""

    def told(size: int | None) -> str:
        return words.UNKNOWN if size is None else f"{words.scaled(size, report)} {words.unit(report)}"

    outside, peaks = report.outside, report.peaks
    between = f"{words.scaled(outside.low_bytes, report)} to {told(outside.high_bytes)}, {outside.how}"
    yield "Peak allocated", told(peaks.allocated_bytes), "tensors"
    yield "Peak reserved", told(peaks.reserved_bytes), "by torch's allocator"
    yield "Outside", told(outside.bytes), between
    yield "Process total", told(peaks.process_total_bytes), "what nvidia-smi shows"
    yield "Card", told(words.memory_bytes(report)), report.card.name


def _recorded_figures(found: Summary) -> Iterable[tuple[str, str, str]]:
    if found.trace is not None:
        yield "Peak allocated", format_bytes(found.trace.peak_allocated_bytes), "tensors"
        yield "Peak reserved", format_bytes(found.trace.peak_reserved_bytes), "by torch's allocator"
