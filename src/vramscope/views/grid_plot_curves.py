"""Loss and accuracy by epoch (needs matplotlib)."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from vramscope.lab.grid import Epoch, Grid, Training
from vramscope.views import grid_words as say
from vramscope.views.grid_plot_style import (
    MUTED,
    TEXT,
    Axes,
    Figure,
    colour_of,
    entitle,
    legend,
    new_figure,
    short,
)

Scores = Callable[[Epoch], "tuple[float | None, float | None]"]
"""Of training and of evaluation."""
_KINDS = (("-", "o"), (":", "x"))
"""Lines and points of training and of evaluation."""
_BESIDE = 0.06
"""Where there is one epoch, the points of the cells stand side by side, so far apart."""


def curves_picture(grid: Grid) -> Figure | None:
    """Loss and accuracy by epoch, a column of panels for each precision."""
    cells = [cell for cell in grid.cells if cell.epochs]
    if not cells:
        return None
    precisions = list(dict.fromkeys(cell.precision for cell in cells))
    figure = new_figure(6.2)
    panels = figure.subplots(2, len(precisions), sharex=True, sharey="row", squeeze=False)
    for column, precision in enumerate(precisions):
        some = [cell for cell in cells if cell.precision == precision]
        panels[0][column].set_title(short(precision), loc="left", color=TEXT)
        _learned(panels[0][column], grid, some, _losses)
        _learned(panels[1][column], grid, some, _accuracies)
        panels[1][column].set_xlabel("epoch")
    panels[0][0].set_ylabel("loss")
    panels[1][0].set_ylabel("accuracy, %")
    _whole_epochs(panels[1][0], cells)
    legend(figure, *_keys(grid, cells))
    hidden = any(_hidden(cell, cells[number + 1 :]) for number, cell in enumerate(cells))
    note = "; broad and pale: the same as the line upon it" if hidden and grid.epochs > 1 else ""
    below = f"{grid.device} · {say.trained_with(grid)}{note}"
    entitle(figure, f"{grid.model} on {grid.data}: what it learned", below)
    return figure


def _learned(axes: Axes, grid: Grid, cells: Sequence[Training], scores: Scores) -> None:
    """A line of training and one of evaluation for each cell; one that a later one hides is broad and pale."""
    for number, cell in enumerate(cells):
        hidden = _hidden(cell, cells[number + 1 :])
        beside = _BESIDE * (number - (len(cells) - 1) / 2) if len(cell.epochs) == 1 else 0
        for index, (style, marker) in enumerate(_KINDS):
            values = [(each.epoch + beside, scores(each)[index]) for each in cell.epochs]
            known = [(epoch, value) for epoch, value in values if value is not None and math.isfinite(value)]
            how = {"linewidth": 7, "alpha": 0.35} if hidden else {"linewidth": 1.6, "marker": marker}
            if beside or len(cell.epochs) == 1:
                how = {"marker": marker, "markersize": 7}
            if known:
                axes.plot(
                    *zip(*known, strict=True), style, color=colour_of(grid, cell), **{"markersize": 4, **how}
                )


def _hidden(cell: Training, later: Sequence[Training]) -> bool:
    """A later cell of its precision learned the same to the last digit."""
    scores = [_scores(each) for each in cell.epochs]
    return any(
        other.precision == cell.precision and [_scores(each) for each in other.epochs] == scores
        for other in later
    )


def _scores(epoch: Epoch) -> tuple[float | None, ...]:
    return epoch.train_loss, epoch.train_accuracy, epoch.test_loss, epoch.test_accuracy


def _losses(epoch: Epoch) -> tuple[float | None, float | None]:
    return epoch.train_loss, epoch.test_loss


def _accuracies(epoch: Epoch) -> tuple[float | None, float | None]:
    test = None if epoch.test_accuracy is None else 100 * epoch.test_accuracy
    return 100 * epoch.train_accuracy, test


def _whole_epochs(axes: Axes, cells: Sequence[Training]) -> None:
    """No ticks between two epochs."""
    most = max(len(cell.epochs) for cell in cells)
    axes.set_xticks(range(1, most + 1, -(-most // 10)))
    axes.set_xlim(0.5 if most == 1 else 0.8, most + (0.5 if most == 1 else 0.2))


def _keys(grid: Grid, cells: Sequence[Training]) -> tuple[list[Any], list[str]]:
    """A colour for each way of tuning; what the kinds of lines mean."""
    line = importlib.import_module("matplotlib.lines").Line2D
    tunes = {cell.tune: colour_of(grid, cell) for cell in cells}
    handles = [line([], [], color=colour, linewidth=3) for colour in tunes.values()]
    handles += [line([], [], color=MUTED, linestyle=style, marker=marker) for style, marker in _KINDS]
    return handles, [*map(short, tunes), "training", "evaluation"]
