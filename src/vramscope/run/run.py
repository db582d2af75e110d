"""The Run: the one value that every view and analysis reads, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass, field

from vramscope.run.journal import Journal
from vramscope.run.report import Report
from vramscope.run.sums import faults_of
from vramscope.run.trace import Trace

PREDICTED, MEASURED, IMPORTED = "predicted", "measured", "imported"


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of one program's memory."""

    report: Report | None
    """The short of it; None for an imported snapshot, which knows no card and no end."""
    journal: Journal = field(default_factory=Journal)
    """What the processes wrote down, without what `traces` was made from."""
    traces: tuple[Trace, ...] = ()
    """The history of every allocator, one per process and card; the one that peaks highest comes first."""
    origin: str = PREDICTED
    """predicted (on a virtual card), measured (on a real one) or imported (from a snapshot of torch's)."""
    name: str = ""
    """What it was made from, as text: the program's words or the snapshot's file name."""

    @property
    def trace(self) -> Trace | None:
        """The history of the process and card that allocated most; None if nothing was recorded."""
        return self.traces[0] if self.traces else None

    def check(self) -> tuple[str, ...]:
        """The sums that do not close, as sentences; empty when all is well."""
        found = list(self.report.check()) if self.report else []
        for trace in self.traces:
            where = f"process {trace.pid}, cuda:{trace.device}: " if len(self.traces) > 1 else ""
            found += [where + fault for fault in faults_of(trace)]
        return tuple(found)
