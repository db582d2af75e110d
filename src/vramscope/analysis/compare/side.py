"""What a comparison needs of one run, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vramscope.analysis.compare.figures import About
from vramscope.analysis.layers import Layers, Sizes, layers
from vramscope.analysis.lookup import BEFORE, complete_steps, levels, phase_of, span_ends
from vramscope.analysis.peak import Peak, peak
from vramscope.run.categories import CATEGORIES, INDEX
from vramscope.run.curves import allocated_curve, category_curves, live_at, reserved_curve
from vramscope.run.report import Report
from vramscope.run.run import Run
from vramscope.run.trace import Column, Trace

_ENDED = {
    "oom": "out of memory",
    "exception": "crashed",
    "interrupted": "interrupted",
    "signal": "killed",
    "exit": "left by os._exit",
}


@dataclass(frozen=True, slots=True)
class Side:
    """One run as a comparison sees it; the trace is that of the process and card that allocated most."""

    run: Run
    trace: Trace | None
    peak: Peak | None
    layers: Layers | None
    highest: dict[str, int]
    """Bytes of each category when it held most."""
    moments: dict[str, int]
    """And that moment; -1 is before the history."""

    @property
    def report(self) -> Report | None:
        """None for an imported run."""
        return self.run.report

    @property
    def sizes(self) -> Sizes:
        """The model's, all zero where no modules are known."""
        return self.layers.total if self.layers else Sizes()

    @property
    def trainable(self) -> int:
        """Elements that train: those that modules say so of and optimizers have.

        A weight that two modules share counts twice among the modules' own, and an optimizer may have been
        given frozen ones too: the smaller figure is the right one."""
        optimizers = self.trace.tables.optimizers if self.trace is not None else ()
        known = [sum(each.parameters for each in optimizers)] if optimizers else []
        return min([self.sizes.trainable, *known])

    @property
    def steps(self) -> int:
        """Complete optimizer steps."""
        if self.trace is None:
            return self.report.stopped.steps if self.report else 0
        return len(complete_steps(self.trace, self.report))

    def live(self, category: str) -> Column:
        """Rows of a category's blocks at the moment at which it held most."""
        assert self.trace is not None
        rows = live_at(self.trace, self.moments[category])
        found: Column = rows[self.trace.blocks.category[rows] == INDEX[category]]
        return found

    def flagged(self, category: str, flag: int) -> float:
        """The share of those blocks' bytes that have a flag."""
        if self.trace is None or not self.highest.get(category):
            return 0.0
        rows, blocks = self.live(category), self.trace.blocks
        marked = rows[(blocks.flags[rows] & flag) != 0]
        return float(blocks.size_bytes[marked].sum() / self.highest[category])

    def has_flag(self, flag: int) -> bool:
        """Whether any block has it."""
        return self.trace is not None and bool(np.any(self.trace.blocks.flags & flag))

    def phase(self, category: str) -> str | None:
        """Where a category held most."""
        return phase_of(self.trace, self.moments[category])[0] if self.trace is not None else None


def side_of(run: Run) -> Side:
    """All that is asked of a run."""
    trace = run.trace
    if trace is None or (not trace.moments and not len(trace.blocks)):
        return Side(run, None, None, None, {}, {})
    highest, moments = _highest(trace)
    return Side(run, trace, peak(trace, report=run.report), layers(trace, run.report), highest, moments)


def about(side: Side) -> About:
    """The run in a few words."""
    report, top = side.report, side.peak
    phase, step = (top.phase, top.step) if top else (None, None)
    if top is None and report is not None and report.highest is not None:
        phase, step = report.highest.phase, report.highest.step
    partial = report is not None and report.stopped.partial
    ended = _ENDED.get(report.stopped.how, "broken off") if report is not None and partial else None
    name = side.run.name or (" ".join(report.program) if report else "")
    known = report is not None, side.trace is not None
    return About(name, side.run.origin, *known, side.steps, ended, phase, step)


def totals_of(side: Side) -> dict[str, int | None]:
    """The peaks of the whole run, from the report if there is one; else of the highest process."""
    report, trace = side.report, side.trace
    if report is not None:
        peaks = report.peaks
        return {
            "peak allocated": peaks.allocated_bytes,
            "peak reserved": peaks.reserved_bytes,
            "process total": peaks.process_total_bytes,
            "outside": report.outside.bytes,
        }
    known: dict[str, int | None] = {"peak allocated": None, "peak reserved": None}
    if trace is not None:
        known["peak allocated"] = int(levels(trace.blocks, allocated_curve(trace)).max())
        known["peak reserved"] = int(levels(trace.segments, reserved_curve(trace)).max())
    return {**known, "process total": None, "outside": None}


def phases_of(side: Side) -> dict[str, int]:
    """Peak allocated within each phase of the last complete step and of init; of all where no step is complete.

    A span's peak counts what it began with, as torch's own counter does."""
    trace = side.trace
    if trace is None:
        return {}
    whole = complete_steps(trace, side.report)
    curve = levels(trace.blocks, allocated_curve(trace))
    found: dict[str, int] = {}
    for span, end in zip(trace.spans, span_ends(trace), strict=True):
        if not whole or span.step == whole[-1] or span.phase == "init":
            within = int(curve[span.first : end + 1].max())
            found[span.phase] = max(found.get(span.phase, 0), within)
    return found


def _highest(trace: Trace) -> tuple[dict[str, int], dict[str, int]]:
    """Each category's most bytes, and when."""
    blocks = trace.blocks
    curves = category_curves(trace)
    highest, moments = {}, {}
    for number, category in enumerate(CATEGORIES):
        before = int(blocks.size_bytes[(blocks.born < 0) & (blocks.category == number)].sum())
        at = int(np.argmax(curves[number])) if trace.moments else BEFORE
        within = int(curves[number][at]) if trace.moments else 0
        highest[category], moments[category] = max(before, within), at if within >= before else BEFORE
    return highest, moments
