"""Words and anchors that the parts of a plan's page share."""

from __future__ import annotations

from vramscope.planning.plan import Row
from vramscope.planning.result import DOES_NOT_FIT, Result


def row_id(row: Row) -> str:
    """The anchor of a row of the table."""
    return f"row-{row.number}"


def why_id(row: Row) -> str:
    """The anchor of what explains a row."""
    return f"why-{row.number}"


def short_verdict(result: Result) -> str:
    """A word or two."""
    return "too big" if result.verdict == DOES_NOT_FIT else result.verdict


def verdict_class(result: Result) -> str:
    """How it is painted."""
    return result.verdict.replace(" ", "-")
