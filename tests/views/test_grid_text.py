"""A grid of trainings for the terminal, line by line."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from goldens import assert_golden
from grid_shapes import SHAPES, article, cell, grid_of, measured, mixed
from rich.cells import cell_len

from vramscope.views import grid_words as say
from vramscope.views.grid_text import grid_text
from vramscope.views.paragraphs import TextOptions

WIDE = [(name, 100) for name in SHAPES if name not in ("hostile", "many")]


def shown(name: str, layout: TextOptions | None = None) -> str:
    return grid_text(SHAPES[name](), layout).plain


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(("name", "width"), [*WIDE, ("article", 60), ("mixed", 60)])
def test_golden(name: str, width: int):
    text = shown(name, TextOptions(width))

    assert_golden(f"grid_{name}_{width}", text)


@pytest.mark.parametrize("width", [50, 60, 80, 100, 200])
@pytest.mark.parametrize("name", SHAPES)
def test_no_line_is_wider_than_the_terminal(name: str, width: int):
    lines = shown(name, TextOptions(width)).splitlines()

    assert max(map(cell_len, lines)) <= width
    assert all(line.startswith("  ") for line in lines if line)


@pytest.mark.parametrize("name", SHAPES)
def test_a_terminal_that_knows_ascii_only(name: str):
    assert shown(name, TextOptions(ascii_only=True)).isascii()


def test_hostile_names_cannot_paint_the_terminal():
    text = shown("hostile")

    assert "\x1b" not in text
    assert "\x00" not in text


def test_the_last_lines_are_the_commands():
    lines = shown("one", TextOptions(commands=("vramscope lab train a", "b"))).splitlines()

    assert lines[-2:] == ["  next            vramscope lab train a", "                  b"]


def test_differences_stand_beside_those_of_the_article():
    found = article()
    first, _, lora, amp, *_ = found.article

    assert (say.read_change(found, first), say.reading_change(found, first)) == (None, None)
    assert (say.read_change(found, lora), say.read_change(found, amp)) == (0.1, -2.0)
    assert say.apart(found, lora) == pytest.approx(0.02, abs=0.005)
    assert say.apart(found, amp) == pytest.approx(0.28, abs=0.005)
    assert say.article_change(found, found.cells[4]) == -2.0
    assert re.search(r"amp-fp16 +full +3.0 +−2.0 +1.98 +−1.72 +0.28\n", shown("article"))
    assert "3 of 5 differences within 0.2 GiB of the article's, the farthest 0.28 apart" in flat(
        shown("article")
    )


def test_the_article_s_cells_are_shown_whether_they_were_trained_or_not():
    found = replace(article(), cells=article().cells[3:4])

    text = grid_text(found, TextOptions(100)).plain
    assert re.search(r"\n +fp32 +article-lora +5.1 +\+0.1 +3.78", text)
    assert say.article_change(found, found.cells[0]) is None
    assert "article-freeze is full to the byte: its loop sets requires_grad on modules" in flat(text)
    assert say.freezes_nothing(article()) == ""  # the cell says it itself


def test_readings_without_predictions_are_not_shown():
    found = article()
    unknown = replace(found, article=tuple(replace(each, predicted=None) for each in found.article))

    assert say.agreement(unknown) == ""
    assert "nvitop" not in grid_text(unknown).plain


def test_when_all_differences_agree_that_is_said():
    found = article()

    told = say.agreement(replace(found, article=found.article[:3]))
    assert told == "all 2 differences within 0.2 GiB of the article's"


def test_a_cell_that_is_as_another_one_says_so_and_what_is_known_of_its_way():
    found = article()
    told = flat(shown("article"))

    assert "predicted as cell 1 (fp32 · full) to the byte its loop sets requires_grad on modules" in told
    assert "predicted as cell 5 (amp-fp16 · full) to the byte its loop" in told
    assert say.NOTHING not in told
    assert [say.twin(found, each) for each in found.cells] == [None, 1, None, None, None, 5, None, None]


def test_only_reasons_of_what_moved_are_told():
    found = article()

    assert say.why(found, found.cells[3]) == ["activations fell by 1.81 GiB: what is frozen keeps nothing"]
    assert say.why(found, found.cells[2]) == []
    assert say.why(found, replace(found.cells[4], why=("x is so",))) == ["x is so"]


def test_a_card_that_is_too_small_is_named_with_its_cells():
    assert "cell 4 does not fit rtx-3060; the figures say what they need" in flat(shown("mixed"))


def test_no_card_here_is_said_and_measured_figures_are_shown():
    assert "measured no card here: training on cpu takes no memory of an NVIDIA card" in flat(shown("one"))
    assert "memory, measured on cuda (NVIDIA GeForce RTX 3060)" in flat(shown("measured"))
    assert "no card here" not in shown("measured")


def test_a_card_without_a_finished_cell_is_not_no_card():
    found = grid_of(cell("fp32", "full", 3.7, measured=None), device="cuda (T4)")

    assert say.measured(found) == "nothing: no cell came to its end"


def test_predicted_and_measured_stand_together_only_where_the_sizes_are_the_same():
    found = measured()

    assert "reserved, predicted" in grid_text(found).plain
    assert "reserved, predicted" not in grid_text(replace(found, batch=8)).plain
    assert "reserved, predicted" not in grid_text(replace(found, train_images=36)).plain  # no full batch


def test_colours_tell_how_many_were_trained():
    styles = {str(span.style) for span in grid_text(mixed(), TextOptions(100)).spans}

    assert {"bold yellow", "red", "yellow"} <= styles
    assert "bold green" in {str(span.style) for span in grid_text(article()).spans}


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.0, "0.00"), (0.00123, "0.00123"), (4.698, "4.70"), (43.25, "43.2"), (1234.5, "1,234"), (float("nan"), "nan")],
)  # fmt: skip
def test_numbers(value: float | None, text: str):
    assert say.number(value) == text


def test_parts_sum_up_to_the_process_total():
    for each in article().cells:
        assert each.predicted is not None
        assert sum(dict(say.parts_of(each.predicted)).values()) == each.predicted.process_total_bytes
