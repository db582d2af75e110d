"""The stages of a run for the terminal: what each keeps, its peak, its change, with bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from vramscope.analysis.stages import (
    AFTER,
    FIRST,
    HIGHEST,
    MARKS,
    STEADY,
    Stage,
    Stages,
    Stretch,
)
from vramscope.units import format_bytes, format_in
from vramscope.views.figures import change, number, phase, unit_of
from vramscope.views.paragraphs import TextOptions, finished, wrapped
from vramscope.views.tables import Bars, Column, beginning, table

_MOST = 40
"""So many rows are shown; of more the first and the last."""


def stages_text(found: Stages, layout: TextOptions, *, clock: bool = True) -> Text:
    """A sentence and a table; `clock` False leaves the times out, as those of a virtual card say nothing."""
    rows = [row for number, stretch in enumerate(found.stretches) for row in _rows(found, number, stretch)]
    if not rows:
        return finished(wrapped("", "no stages were recorded", layout), layout)
    headline = wrapped("", _headline(found), layout, style="bold")
    return finished([*headline, Text(), *_table(_shortened(rows), layout, clock)], layout)


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the table: a stage, a heading, or a gap."""

    label: str
    stage: Stage | None = None
    highest: bool = False


def _headline(found: Stages) -> str:
    assert found.peak is not None
    stretch = found.stretches[found.peak[0]]
    peak = stretch.stages[found.peak[1]]
    reserved = max(stage.peak_reserved_bytes for each in found.stretches for stage in each.stages)
    by = "stages by the program's marks" if found.by == MARKS else "stages by phase"
    name = phase(peak.name) if peak.name else "what follows the last mark"
    step = f" of step {stretch.step}" if stretch.step is not None and stretch.kind != AFTER else ""
    where = f"{name}{' of the steady step' if stretch.kind == STEADY else step}"
    return (
        f"{by}: allocated is highest in {where}, {format_bytes(peak.peak_allocated_bytes)}; "
        f"reserved reaches {format_bytes(reserved)}"
    )


def _rows(found: Stages, number: int, stretch: Stretch) -> list[_Row]:
    """A heading and the stages of a stretch; by phase, those in which nothing happened are left out."""
    heading = _heading(stretch)
    rows = []
    for place, stage in enumerate(stretch.stages):
        if found.by == MARKS or stage.allocations or stage.change_bytes:
            label = ("  " if heading else "") + _label(found, stage)
            rows.append(_Row(label, stage, highest=found.peak == (number, place)))
    return [_Row(heading), *rows] if heading and rows else rows


def _label(found: Stages, stage: Stage) -> str:
    name = stage.name if found.by == MARKS else phase(stage.name)
    times = f" × {stage.times:,}" if stage.times > 1 else ""
    return f"{name or 'after the last mark'}{times}"


def _heading(stretch: Stretch) -> str:
    match stretch.kind:
        case "first" | "steady" | "highest":
            what = {FIRST: "", STEADY: ", steady", HIGHEST: ", the highest"}[stretch.kind]
            return f"step {stretch.step}{what}"
        case "cut":
            return f"step {stretch.step}, broken off" if stretch.step else "broken off"
        case "after":
            return f"after step {stretch.step}"
    return ""


def _shortened(rows: list[_Row]) -> list[_Row]:
    if len(rows) <= _MOST:
        return rows
    half = _MOST // 2
    return [*rows[:half], _Row(f"… {len(rows) - 2 * half:,} more (--json has all)"), *rows[-half:]]


def _table(rows: Sequence[_Row], layout: TextOptions, clock: bool) -> list[Text]:
    stages = [row.stage for row in rows]
    unit = unit_of(stage.peak_reserved_bytes for stage in stages if stage)

    def figures(name: str) -> list[str]:
        return [format_in(getattr(stage, name), unit) if stage else "" for stage in stages]

    columns = [
        Column(unit, [row.label for row in rows], right=False, least=16, cut=beginning),
        Column("kept", figures("allocated_bytes")),
        Column("peak", figures("peak_allocated_bytes")),
        Column("change", [change(stage.change_bytes, unit) if stage else "" for stage in stages], rank=2),
        Column("reserved", figures("reserved_bytes"), rank=1),
        Column("its peak", figures("peak_reserved_bytes"), rank=3),
        Column("allocations", [number(stage.allocations) if stage else "" for stage in stages], rank=5),
        Column("time", [_duration(stage.time_us) if stage and clock else "" for stage in stages], rank=4),
    ]
    bars = Bars(
        [stage.allocated_bytes if stage else None for stage in stages],
        max(stage.peak_allocated_bytes for stage in stages if stage),
        beyond=[stage.peak_allocated_bytes if stage else None for stage in stages],
    )
    styles = ["bold" if row.highest else "" if row.stage else "dim" for row in rows]
    return table(columns, layout, bars, styles)


def _duration(time_us: int | None) -> str:
    """``12.3 ms``; nothing where it is not known, so that a run without a clock has no such column."""
    if time_us is None:
        return ""
    for unit, factor in (("s", 1_000_000), ("ms", 1000)):
        if time_us >= factor:
            return f"{time_us / factor:,.1f} {unit}"
    return f"{time_us} µs"
