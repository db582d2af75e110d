"""Memory against speed (needs matplotlib)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from vramscope.lab.grid import Grid, Training
from vramscope.units import GIB
from vramscope.views import grid_words as say
from vramscope.views.grid_plot_style import MUTED, Axes, Figure, colour_of, entitle, legend, new_figure, short

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
_LOGARITHMIC = 20
"""Speeds that are farther apart than this have a logarithmic axis."""


def speed_picture(grid: Grid) -> Figure | None:
    """Memory against speed, a point for each cell that has both."""
    measured = any(cell.measured and cell.measured.process_total_bytes for cell in grid.cells)
    cells = [cell for cell in grid.cells if cell.samples_per_second and _total(cell, measured)]
    if not cells:
        return None
    figure = new_figure(4.8)
    axes = figure.subplots()
    precisions = list(dict.fromkeys(cell.precision for cell in cells))
    for cell in cells:
        place = [cell.samples_per_second], [(_total(cell, measured) or 0) / GIB]
        axes.plot(*place, clip_on=False, **_marker(precisions.index(cell.precision), colour_of(grid, cell)))
    _axes_of_speed(axes, [cell.samples_per_second or 0 for cell in cells])
    legend(figure, *_marker_keys(grid, cells, precisions))
    memory = "measured there" if measured else f"predicted for {say.predicted_for(grid)}"
    speed = f"speed on {grid.device} · batch {grid.batch} · image {grid.image}"
    entitle(figure, f"{grid.model}: memory against speed", f"{speed}; memory {memory}")
    return figure


def _marker(number: int, colour: str) -> dict[str, Any]:
    """A precision's, full for the first one."""
    return {
        "linestyle": "",
        "marker": _MARKERS[number % len(_MARKERS)],
        "color": colour,
        "markersize": 10,
        "markerfacecolor": "white" if number else colour,
        "markeredgewidth": 2,
    }


def _total(cell: Training, measured: bool) -> int | None:
    memory = cell.measured if measured else cell.predicted
    return memory.process_total_bytes if memory else None


def _axes_of_speed(axes: Axes, speeds: Sequence[float]) -> None:
    if max(speeds) > _LOGARITHMIC * min(speeds):
        ticker = importlib.import_module("matplotlib.ticker")
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    else:
        axes.set_xlim(0, 1.08 * max(speeds))
    axes.set_ylim(0, None)
    axes.set_xlabel("images per second: farther right is faster")
    axes.set_ylabel("process, GiB: lower is less")


def _marker_keys(
    grid: Grid, cells: Sequence[Training], precisions: Sequence[str]
) -> tuple[list[Any], list[str]]:
    line = importlib.import_module("matplotlib.lines").Line2D
    tunes = {cell.tune: colour_of(grid, cell) for cell in cells}
    handles = [line([], [], color=colour, linewidth=3) for colour in tunes.values()]
    handles += [line([], [], **_marker(number, MUTED)) for number, _ in enumerate(precisions)]
    return handles, [*map(short, tunes), *map(short, precisions)]
