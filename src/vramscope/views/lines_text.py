"""Memory by source line for the terminal: at the peak, and over the whole run."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from vramscope.analysis.lines import Lines, LineUse
from vramscope.run.categories import plural
from vramscope.units import format_bytes
from vramscope.views import words
from vramscope.views.figures import figure, number, share, unit_of
from vramscope.views.paragraphs import TextOptions, finished, wrapped
from vramscope.views.tables import Bars, Column, beginning, place_within, table

_MOST = 25
"""So many lines are shown."""


def lines_text(found: Lines, layout: TextOptions) -> Text:
    """A sentence and a table; below each of the program's own lines its text."""
    if not any(each.where for each in found.rows):
        return finished(wrapped("", _without(found), layout), layout)
    headline = wrapped("", _headline(found), layout, style="bold")
    return finished([*headline, Text(), *_table(found, layout)], layout)


def _without(found: Lines) -> str:
    if not found.rows:
        return "nothing was allocated"
    return "no source lines are known: the run was recorded without Python stacks"


def _headline(found: Lines) -> str:
    lines = words.count(sum(1 for each in found.rows if each.where), "known line")
    return (
        f"{format_bytes(found.total_bytes)} were asked for over the run, by {lines}; "
        f"{format_bytes(found.allocated_bytes)} of it is live at the peak"
    )


def _table(found: Lines, layout: TextOptions) -> list[Text]:
    shown, more = found.rows[:_MOST], found.rows[_MOST:]
    peak_unit = unit_of((each.peak_bytes for each in found.rows), fine=True)
    run_unit = unit_of((each.total_bytes for each in found.rows), fine=True)
    rest = _together(more)
    rows = [*shown, *rest]
    columns = [
        Column(
            "line",
            [each.where or "no line" for each in shown] + [f"{len(more):,} more"] * len(rest),
            right=False,
            least=18,
            wish=26,
            cut=place_within,
        ),
        Column(f"peak, {peak_unit}", [figure(each.peak_bytes, peak_unit) for each in rows]),
        Column("share", [share(each.peak_bytes, found.allocated_bytes) for each in rows]),
        Column("mostly", [_mostly(each) for each in rows], right=False, rank=2),
        Column(f"in all, {run_unit}", [figure(each.total_bytes, run_unit) for each in rows], rank=2),
        Column("blocks", [number(each.count) for each in rows], rank=3),
        Column(f"largest, {peak_unit}", [figure(each.largest_bytes, peak_unit) for each in rows], rank=3),
        Column(
            "source", [each.text for each in rows], right=False, rank=4, least=16, cut=beginning, style="dim"
        ),
    ]
    styles = ["" if each.user else "dim" for each in rows]
    return table(columns, layout, Bars([each.peak_bytes for each in rows], found.allocated_bytes), styles)


def _together(lines: Sequence[LineUse]) -> list[LineUse]:
    """What is not shown, as one."""
    if not lines:
        return []
    return [
        LineUse(
            where=None,
            text="",
            user=False,
            peak_bytes=sum(each.peak_bytes for each in lines),
            total_bytes=sum(each.total_bytes for each in lines),
            count=sum(each.count for each in lines),
            largest_bytes=max(each.largest_bytes for each in lines),
            peak_categories=(),
            categories=(),
        )
    ]


def _mostly(line: LineUse) -> str:
    """The category that most of the line's memory is of, at the peak if it has any there."""
    found = line.peak_categories or line.categories
    return plural(found[0][0]) if found else ""
