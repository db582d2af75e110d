"""The exit status of a prediction."""

from __future__ import annotations

from vramscope.run.report import Report
from vramscope.units import format_bytes

OUT_OF_MEMORY = 3
OVER_LIMIT = 4
INTERRUPTED = 130


def exit_status(report: Report, limit_bytes: int | None) -> int:
    """3 if it ran out of memory, else the program's own (128 + n for signal n), else 4 if over the limit."""
    if report.oom is not None and not report.oom.caught:
        return OUT_OF_MEMORY
    if report.stopped.how == "interrupted":
        return INTERRUPTED
    status = report.stopped.status
    if status:
        return 128 - status if status < 0 else status
    return OVER_LIMIT if limit_bytes is not None and over(report, limit_bytes) else 0


def over(report: Report, limit_bytes: int) -> str | None:
    """Why a gate of so many bytes is not passed; None if it is.  What is not known passes no gate."""
    total = report.peaks.process_total_bytes
    if total is None:
        return "--fail-over cannot be judged: the program put nothing on the card"
    if total <= limit_bytes:
        return None
    excess = format_bytes(total - limit_bytes)
    return f"process total {format_bytes(total)} is over --fail-over {format_bytes(limit_bytes)} by {excess}"
