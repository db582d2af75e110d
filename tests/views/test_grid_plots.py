"""A grid of trainings as pictures."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from importlib import resources

import pytest
from grid_shapes import HOSTILE, SHAPES, article, grid_of, hostile

from vramscope.errors import MissingLibraryError
from vramscope.run.categories import CATEGORIES
from vramscope.views import grid_plots as plots
from vramscope.views.grid_plot_memory import COLOURS

NAMES = list(plots.NAMES)


@pytest.fixture(scope="module")
def drawn() -> dict[str, bytes]:
    pytest.importorskip("matplotlib")
    return plots.grid_plots(article())


def size_of(png: bytes) -> tuple[int, int]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_each_is_there_twice_and_large_enough_to_be_read(drawn: dict[str, bytes]):
    assert list(drawn) == NAMES
    for name, data in drawn.items():
        if name.endswith("png"):
            width, height = size_of(data)
            assert width == 1440
            assert 600 <= height <= 1000
        else:
            assert ElementTree.fromstring(data).tag.endswith("svg")


def test_the_same_grid_is_the_same_svg(drawn: dict[str, bytes]):
    again = plots.grid_plots(article())

    assert {name: again[name] == drawn[name] for name in NAMES if name.endswith("svg")} == {
        "memory.svg": True,
        "curves.svg": True,
        "speed.svg": True,
    }


def test_hostile_names_are_only_names():
    pytest.importorskip("matplotlib")
    found = plots.grid_plots(replace(hostile(), model=f"{HOSTILE}名前"))

    assert list(found) == NAMES
    for name, data in found.items():
        if name.endswith("svg"):
            tags = {each.tag.rpartition("}")[2] for each in ElementTree.fromstring(data).iter()}
            assert "script" not in tags
            assert "\x1b" not in data.decode()
            assert HOSTILE not in data.decode()


@pytest.mark.parametrize(
    ("name", "pictures"),
    [
        ("nothing", set()),
        ("unpredicted", {"curves"}),
        ("mixed", {"memory", "curves", "speed"}),
        ("measured", {"memory", "curves", "speed"}),
    ],
)
def test_what_there_are_no_figures_for_is_not_drawn(name: str, pictures: set[str]):
    pytest.importorskip("matplotlib")
    figures = {each: draw(SHAPES[name]()) for each, draw in plots.PICTURES.items()}

    assert {each for each, figure in figures.items() if figure is not None} == pictures


def test_without_matplotlib_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plots, "find_spec", lambda name: None)

    with pytest.raises(
        MissingLibraryError, match=r"--plots needs matplotlib.*pip install 'vramscope\[plots\]'"
    ):
        plots.grid_plots(grid_of())


def test_a_category_has_the_page_s_colour():
    css = resources.files("vramscope.views.page").joinpath("page.css").read_text(encoding="utf-8")
    page = dict(re.findall(r"--c-([\w-]+): light-dark\((#\w+),", css))

    assert {name: COLOURS[name] for name in CATEGORIES} == {name: page[name] for name in CATEGORIES}
