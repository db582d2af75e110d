"""A run in a few figures: what the report does not say, and all there is to say of a run without one."""

from __future__ import annotations

from dataclasses import dataclass

from vramscope.analysis.lookup import complete_steps, levels
from vramscope.analysis.peak import Peak, peak
from vramscope.run.curves import allocated_curve, reserved_curve
from vramscope.run.run import Run
from vramscope.run.trace import Trace


@dataclass(frozen=True, slots=True)
class Recorded:
    """One process on one card."""

    process: int
    device: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of one trace of a run."""

    origin: str
    """predicted, measured or imported"""
    name: str
    trace: Recorded | None
    """The trace that the figures are of; None: nothing was recorded."""
    others: tuple[Recorded, ...]
    """The run's other processes and cards."""
    peak: Peak | None
    events: int
    steps: int
    """Complete optimizer steps."""
    whole: bool
    """The history begins with an empty allocator."""
    notes: tuple[str, ...]


def summary(run: Run, trace: Trace | None) -> Summary:
    """The figures of a run and of one of its traces."""
    others = tuple(_recorded(each) for each in run.traces if each is not trace)
    if trace is None:
        return Summary(run.origin, run.name, None, others, None, 0, 0, True, ())
    return Summary(
        origin=run.origin,
        name=run.name,
        trace=_recorded(trace),
        others=others,
        peak=peak(trace, report=run.report),
        events=trace.moments,
        steps=len(complete_steps(trace, run.report)),
        whole=trace.whole,
        notes=trace.notes,
    )


def _recorded(trace: Trace) -> Recorded:
    allocated = levels(trace.blocks, allocated_curve(trace))
    reserved = levels(trace.segments, reserved_curve(trace))
    return Recorded(trace.pid, trace.device, int(allocated.max()), int(reserved.max()))
