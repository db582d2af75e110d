"""A plan for the terminal, line by line."""

from __future__ import annotations

from dataclasses import replace

import pytest
from goldens import assert_golden
from plan_shapes import SHAPES, many, plan_of, result, row, six, twelve
from rich.cells import cell_len

from vramscope.planning.result import FAILED
from vramscope.run.report import UNLIMITED_BYTES
from vramscope.views import plan_words as say
from vramscope.views.paragraphs import TextOptions
from vramscope.views.plan_rows import ORDER, by_card, combinations, parts_of
from vramscope.views.plan_text import plan_text

WIDE = [(name, 100) for name in SHAPES if name != "hostile"]
OTHERS = [("one", 140), ("six", 60), ("twelve", 60), ("twelve", 140)]


def shown(name: str, layout: TextOptions | None = None, sort: str = "memory") -> str:
    return plan_text(SHAPES[name](), layout, sort=sort).plain


def numbers(text: str) -> list[int]:
    """The rows of the first table, by their numbers."""
    lines = text.split("\n  row  ", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    return [int(line.split()[0]) for line in lines]


@pytest.mark.parametrize(("name", "width"), [*WIDE, *OTHERS])
def test_golden(name: str, width: int):
    text = shown(name, TextOptions(width))

    assert_golden(f"plan_{name}_{width}", text)


@pytest.mark.parametrize("width", [50, 60, 80, 100, 200])
@pytest.mark.parametrize("name", SHAPES)
def test_no_line_is_wider_than_the_terminal(name: str, width: int):
    lines = shown(name, TextOptions(width)).splitlines()

    assert max(map(cell_len, lines)) <= width
    assert all(line.startswith("  ") for line in lines if line)


@pytest.mark.parametrize("name", SHAPES)
def test_a_terminal_that_knows_ascii_only(name: str):
    assert shown(name, TextOptions(ascii_only=True)).isascii()


def test_what_a_program_names_cannot_paint_the_terminal():
    text = shown("hostile")

    assert "\x1b" not in text
    assert " [31m" in text


def test_what_fits_comes_first_and_the_least_memory_first():
    assert numbers(shown("six")) == [6, 5, 2, 4, 3, 1]
    assert numbers(shown("twelve")) == [7, 5, 3, 1, 9, 11]


def test_rows_in_the_order_of_the_matrix():
    assert numbers(shown("six", sort=ORDER)) == [1, 2, 3, 4, 5, 6]
    assert numbers(shown("twelve", sort=ORDER)) == [1, 3, 5, 7, 9, 11]


def test_the_last_lines_are_the_commands():
    lines = shown("one", TextOptions(commands=("vramscope plan a", "vramscope plan b"))).splitlines()

    assert lines[-2:] == ["  next            vramscope plan a", "                  vramscope plan b"]


def test_every_row_is_in_a_table_however_many_there_are():
    text = shown("many", TextOptions(80))
    found = [
        int(line.split()[0]) for line in text.splitlines() if line[:5].strip().isdigit() and line[5:7] == "  "
    ]

    assert sorted(found) == [row.number for row in many().rows]


def test_colours_tell_what_fits():
    text = plan_text(twelve(), TextOptions(100))
    styled = {str(span.style): text.plain[span.start : span.end].strip() for span in text.spans}

    assert styled["green"].endswith("fits")
    assert styled["red"].endswith("no")
    assert styled["yellow"] in ("cannot run", "failed")


def test_the_fixed_knobs_that_nobody_turned_are_told_apart():
    text = shown("six")

    assert "  with            batch 90 · image 224\n" in text
    assert "  by default      optimizer adamw\n" in text


def test_the_same_on_all_cards_is_said_once():
    text = shown("twelve", TextOptions(200))

    assert text.count("cannot run: tune=qlora") == 2
    assert "  rows 9, 10      qlora · checkpoint off\n                  cannot run" in text
    assert "rtx-4090: peak allocated −82.0 GiB" in text


def test_a_row_that_failed_has_no_reasons_and_no_price():
    plan = six()
    broken = replace(plan.rows[5], result=result(3.0, verdict=FAILED, why="ValueError: no"))
    text = (
        plan_text(replace(plan, rows=(*plan.rows[:5], broken)))
        .plain.split("  row 6 ", 1)[1]
        .split("\n\n", 1)[0]
    )

    assert "failed: ValueError: no" in text
    assert "activations fell" not in text
    assert "costs" not in text


def test_memory_without_end_is_no_size():
    plan = plan_of([row(1, {}, result(8.17, capacity_bytes=UNLIMITED_BYTES))])
    text = plan_text(plan).plain

    assert "rtx-3060: fits, 8.17 GiB\n" in text
    assert "card            rtx-3060, memory unlimited\n" in text


def test_notes_name_their_rows_unless_all_share_them():
    plan = six()
    rows = (
        replace(plan.rows[0], result=replace(plan.rows[0].result, notes=("x is modelled",))),
        *plan.rows[1:],
    )

    assert say.notes(plan) == ["launch-parameter pools is modelled", "assumed: float is 1.0"]
    assert say.notes(replace(plan, rows=rows))[:2] == [
        "x is modelled (row 1)",
        "launch-parameter pools is modelled (rows 2–6)",
    ]


@pytest.mark.parametrize("name", SHAPES)
def test_the_parts_of_a_bar_sum_up_to_the_process_total(name: str):
    for each in SHAPES[name]().rows:
        parts = parts_of(each.result)
        assert sum(size for _, size in parts) == (each.result.process_total_bytes if parts else 0)


def test_every_row_belongs_to_one_card_and_one_combination():
    plan = many()

    assert sum(map(len, by_card(plan).values())) == len(plan.rows)
    assert sum(len(each.rows) for each in combinations(plan)) == len(plan.rows)
    assert all(list(each.rows) == list(plan.cards) for each in combinations(plan))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (11_689_512, "11.7 M"),
        (8_030_261_248, "8.03 B"),
        (999_600, "1.00 M"),
        (10**12, "1.00 T"),
    ],
)
def test_counts(number: int, text: str):
    assert say.count(number) == text
