"""A grid of trainings as pictures: memory by category, loss and accuracy, memory against speed (needs matplotlib)."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec

from vramscope.errors import MissingLibraryError
from vramscope.lab.grid import Grid
from vramscope.views.grid_plot_curves import curves_picture
from vramscope.views.grid_plot_memory import memory_picture
from vramscope.views.grid_plot_speed import speed_picture
from vramscope.views.grid_plot_style import SETTINGS, Figure, file_of

PICTURES: Mapping[str, Callable[[Grid], Figure | None]] = {
    "memory": memory_picture,
    "curves": curves_picture,
    "speed": speed_picture,
}
"""By file name; None where there are no figures for it."""
KINDS = ("png", "svg")
NAMES = tuple(f"{name}.{kind}" for name in PICTURES for kind in KINDS)
"""Of all files."""


def check_library() -> None:
    """MissingLibraryError where matplotlib is not installed; it is not imported to find out."""
    if find_spec("matplotlib") is None:
        raise MissingLibraryError("--plots", "matplotlib", "pip install 'vramscope[plots]'")


def grid_plots(grid: Grid) -> dict[str, bytes]:
    """Each picture's file name and its bytes, as PNG and SVG; what there are no figures for is not drawn."""
    check_library()
    matplotlib = importlib.import_module("matplotlib")
    files: dict[str, bytes] = {}
    with matplotlib.rc_context(SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)  # a name in a rare script
        for name, draw in PICTURES.items():
            figure = draw(grid)
            if figure is not None:
                files.update({f"{name}.{kind}": file_of(figure, kind) for kind in KINDS})
    return files
