"""What the pictures of a grid of trainings have in common: colours, a figure's size, title and legend.

Names are drawn as they are written: no formulas, no characters that cannot be printed."""

from __future__ import annotations

import importlib
import io
import textwrap
from collections.abc import Sequence
from typing import Any

from vramscope.lab.grid import Grid, Training
from vramscope.views.tables import printable

Axes = Any
Figure = Any

_LINES = ("#1f5fbf", "#c0322b", "#226a28", "#98348c", "#b8860b", "#5e6a75", "#35a587", "#5e2145")
TEXT, MUTED, _LINE = "#1b1f24", "#5b646f", "#e3e6ea"
SETTINGS = {
    "font.size": 10,
    "text.color": TEXT,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": _LINE,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _LINE,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "text.parse_math": False,
    "text.usetex": False,
    "axes.formatter.use_mathtext": False,
    "svg.hashsalt": "vramscope",
    "savefig.facecolor": "white",
}
_WIDTH = 9.6
"""Of a picture in inches."""
_DPI = 150
_LONGEST = 125
"""So many characters stand in a line above a picture."""


def new_figure(height: float) -> Figure:
    """An empty one, which belongs to no window and no global state."""
    made = importlib.import_module("matplotlib.figure")
    figure = made.Figure(figsize=(_WIDTH, height), dpi=_DPI, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)
    return figure


def file_of(figure: Figure, kind: str) -> bytes:
    """The picture as png or svg, the same each time."""
    data = io.BytesIO()
    figure.savefig(data, format=kind, metadata={"Date": None} if kind == "svg" else {})
    return data.getvalue()


def entitle(figure: Figure, title: str, below: str) -> None:
    """What is seen, and under which conditions."""
    lines = textwrap.wrap(printable(below), _LONGEST)
    figure.suptitle(
        "\n".join((short(title), *lines)), x=0.01, ha="left", fontsize=10, color=TEXT, linespacing=1.4
    )


def short(text: str) -> str:
    """A name in a line."""
    clean = printable(text)
    return clean if len(clean) <= _LONGEST else f"{clean[: _LONGEST - 1]}…"


def legend(figure: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Below the picture."""
    figure.legend(handles, labels, loc="outside lower left", ncols=5, fontsize=9)


def colour_of(grid: Grid, cell: Training) -> str:
    """The same for a way of tuning in every picture."""
    tunes = list(dict.fromkeys(each.tune for each in grid.cells))
    return _LINES[tunes.index(cell.tune) % len(_LINES)]
