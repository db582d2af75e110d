"""What each cell's process is predicted to hold, as stacked bars (needs matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vramscope.cards import find_card
from vramscope.errors import VramscopeError
from vramscope.lab.grid import CANNOT_RUN, Grid, Memory
from vramscope.run.categories import CATEGORIES, plural
from vramscope.units import GIB, format_gib
from vramscope.views import grid_words as say
from vramscope.views.grid_plot_style import MUTED, TEXT, Axes, Figure, entitle, legend, new_figure, short

COLOURS = {
    "parameter": "#5f78bd",
    "buffer": "#74cbee",
    "gradient": "#98348c",
    "optimizer_state": "#226a28",
    "activation": "#35a587",
    "input": "#8f8f2e",
    "temporary": "#f0e08a",
    "workspace": "#c5525a",
    "autocast_cache": "#f3b483",
    "communication": "#5e2145",
    "kv_cache": "#5a3bb0",
    "unknown": "#b8bdc4",
    "allocated": "#35a587",
    "cached": "#e3e6ea",
    "outside": "#9aa4b0",
}
"""Of the categories as on the page."""
_CARD_IN_SIGHT = 1.6
"""The card's memory is a line where it is no more than so many times the largest bar."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A bar and its marks."""

    name: str
    predicted: Memory | None
    measured: int | None = None
    """Bytes of the process, at the sizes of the prediction."""
    read: float | None = None
    """The article's reading, GB."""
    cannot_run: bool = False

    @property
    def parts(self) -> Mapping[str, int]:
        """What the bar is made of."""
        return dict(say.parts_of(self.predicted)) if self.predicted else {}


def memory_picture(grid: Grid) -> Figure | None:
    """What each cell's process is predicted to hold, and what was measured or read of it."""
    rows = _rows(grid)
    parts = [row.parts for row in rows]
    if not any(parts):
        return None
    figure = new_figure(1.7 + 0.36 * len(rows) + 0.3)
    axes = figure.subplots()
    for kind in [*CATEGORIES, "allocated", "cached", "outside"]:
        _stack(axes, parts, kind)
    _points(axes, [None if row.measured is None else row.measured / GIB for row in rows], "black", "measured")
    _points(axes, [row.read for row in rows], "#c0322b", "the article's reading in nvitop")
    _totals(axes, rows)
    _card(axes, grid, parts)
    axes.set_yticks(range(len(rows)), [short(row.name) for row in rows])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0, labelcolor=TEXT)
    axes.set_xlabel("GiB")
    legend(figure, *_marks_last(*axes.get_legend_handles_labels()))
    entitle(figure, f"{grid.model}: what the process holds", f"predicted for {say.predicted_for(grid)}")
    return figure


def _rows(grid: Grid) -> list[_Row]:
    """The grid's cells, then those of the article that were not trained here."""
    same = say.same_sizes(grid)
    cells = [
        _Row(
            say.name(cell),
            cell.predicted,
            cell.measured.process_total_bytes if cell.measured and same else None,
            say.read(grid, cell),
            cell.verdict == CANNOT_RUN,
        )
        for cell in grid.cells
    ]
    known = {row.name for row in cells}
    others = [each for each in grid.article if say.name(each) not in known]
    return cells + [
        _Row(f"not trained: {say.name(each)}", each.predicted, read=each.nvitop_gb) for each in others
    ]


def _stack(axes: Axes, parts: Sequence[Mapping[str, int]], kind: str) -> None:
    """One part of all bars, if it can be seen in any of them."""
    highest = max(sum(each.values()) for each in parts)
    if max(each.get(kind, 0) for each in parts) < highest / 500:
        return
    sizes = [each.get(kind, 0) / GIB for each in parts]
    lefts = [_before(each, kind) / GIB for each in parts]
    axes.barh(range(len(parts)), sizes, 0.68, lefts, color=COLOURS[kind], label=plural(kind), linewidth=0)


def _before(parts: Mapping[str, int], kind: str) -> int:
    """The bytes left of a part."""
    names = list(parts)
    return sum(parts[name] for name in names[: names.index(kind)]) if kind in names else 0


def _totals(axes: Axes, rows: Sequence[_Row]) -> None:
    """What a bar sums up to, behind it."""
    for place, row in enumerate(rows):
        total = row.predicted.process_total_bytes if row.predicted else None
        if total is None:
            text, at = "cannot run" if row.cannot_run else "not predicted", 0
        else:
            text, at = format_gib(total), max(total, row.measured or 0)
        how = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
        axes.annotate(text, (at / GIB, place), **how)


def _points(axes: Axes, sizes: Sequence[float | None], colour: str, label: str) -> None:
    known = [(each, row) for row, each in enumerate(sizes) if each is not None]
    if known:
        x, y = zip(*known, strict=True)
        axes.plot(x, y, "|", color=colour, markersize=17, markeredgewidth=2, label=label, clip_on=False)


def _card(axes: Axes, grid: Grid, parts: Sequence[Mapping[str, int]]) -> None:
    """The card's memory as a line, where it is in sight."""
    try:
        memory = find_card(grid.card).memory_bytes
    except VramscopeError:
        return
    if memory <= _CARD_IN_SIGHT * max(sum(each.values()) for each in parts):
        axes.axvline(memory / GIB, color=MUTED, linestyle="--", label=f"{grid.card}'s memory")


def _marks_last(handles: Sequence[Any], labels: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Bars first, in their order."""
    order = sorted(range(len(handles)), key=lambda index: not hasattr(handles[index], "patches"))
    return [handles[index] for index in order], [labels[index] for index in order]
