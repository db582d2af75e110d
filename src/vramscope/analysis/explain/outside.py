"""Why nvidia-smi shows more than torch: what a process holds beside torch's allocator, and who else is there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from vramscope.analysis.explain.finding import UNTRIED, Evidence, Finding, Remedy
from vramscope.run.report import Report
from vramscope.run.run import Run
from vramscope.run.trace import Span
from vramscope.units import format_bytes


def total_above_reserved(run: Run) -> Iterator[Finding]:
    """The process total at its peak, against the reserved one."""
    report = run.report
    if report is None:
        return
    total, reserved = report.peaks.process_total_bytes, report.peaks.reserved_bytes
    if total is None or reserved is None or total <= reserved:
        return
    yield Finding(
        "outside",
        f"Why does nvidia-smi show {format_bytes(total)} when torch has reserved {format_bytes(reserved)}?",
        " ".join(_story(run, report, total - reserved)),
        total - reserved,
        evidence=tuple(_parts(report, total - reserved)),
        remedies=tuple(_remedies(report)),
    )


def _story(run: Run, report: Report, gap: int) -> Iterator[str]:
    outside = report.outside
    yield "It counts what the process holds beside torch's allocator: the CUDA context, loaded kernels, libraries."
    yield (
        f"That is {format_bytes(outside.bytes)} ({outside.how}, between {format_bytes(outside.low_bytes)} "
        f"and {format_bytes(outside.high_bytes)})."
    )
    if gap > outside.bytes:
        yield f"{format_bytes(gap - outside.bytes)} more {_others(report)}."
    yield from _growth(run)


def _others(report: Report) -> str:
    most = max((each.processes or 0 for each in report.devices), default=0)
    if most > 1:
        return f"belong to {'another process' if most == 2 else f'{most - 1} other processes'} on the card"
    return "are of libraries that allocate themselves, or of peaks that fall on different moments"


def _growth(run: Run) -> Iterator[str]:
    """Where what is outside grew most, if the run tells it span by span."""
    trace = run.trace
    known = [span for span in trace.spans if span.outside_bytes is not None] if trace else []
    steps = [(_held(after) - _held(before), after) for before, after in pairwise(known)]
    grown, span = max(steps, key=lambda each: each[0], default=(0, None))
    if span is not None and grown > 0:
        step = f", step {span.step}" if span.step is not None else ""
        yield f"It grew most, by {format_bytes(grown)}, in {span.phase.replace('_', ' ')}{step}."


def _held(span: Span) -> int:
    return span.outside_bytes or 0


def _parts(report: Report, gap: int) -> Iterator[Evidence]:
    yield Evidence("context", min(report.outside.bytes, gap), report.outside.note or report.outside.how)
    if gap > report.outside.bytes:
        yield Evidence("beside it", gap - report.outside.bytes)


def _remedies(report: Report) -> Iterator[Remedy]:
    if report.outside.loading == "eager":
        yield Remedy("CUDA_MODULE_LOADING=LAZY, the default", None, UNTRIED, of="process total")
