"""The terminal's report, line by line, at two widths."""

from __future__ import annotations

import pytest
from goldens import assert_golden
from rich.cells import cell_len

from builders import REPORTS, a_report, span, step, trained
from vramscope.run.report import Step
from vramscope.views.paragraphs import TextOptions
from vramscope.views.report_text import bar, chosen_steps, report_text

COMMANDS = ("vramscope show train.vram",)


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("name", REPORTS)
def test_golden(name: str, width: int):
    shown = report_text(REPORTS[name](), TextOptions(width, commands=COMMANDS)).plain

    assert_golden(f"{name}_{width}", shown)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("name", REPORTS)
def test_no_line_is_wider_than_the_terminal(name: str, width: int):
    lines = report_text(REPORTS[name](), TextOptions(width)).plain.splitlines()

    assert max(map(cell_len, lines)) <= width


@pytest.mark.parametrize("name", REPORTS)
def test_a_terminal_that_knows_ascii_only(name: str):
    report = REPORTS[name]()

    assert report_text(report, TextOptions(ascii_only=True)).plain.isascii()


def test_what_a_program_writes_cannot_paint_the_terminal():
    entries = [{"pid": 1, "kind": "waiting", "where": "\x1b[31mtrain.py\n:7[bold]", "note": None}]

    shown = report_text(a_report(entries)).plain

    assert "\x1b" not in shown
    assert "a loop at  [31mtrain.py :7[bold] waited" in shown


def test_unknown_is_no_zero():
    figures = {"device": 0, "peak_used_bytes": 1 << 30}
    entries = [
        {"pid": 1, "kind": "span", "step": 1, "phase": "forward", "devices": [figures]},
        step(1, pid=1),
    ]

    shown = report_text(a_report(entries)).plain

    assert "  allocated         unknown" in shown
    assert "  process total        1.00" in shown


def test_the_verdict_has_its_colour():
    styles = {str(part.style) for part in report_text(trained()).spans}

    assert "bold green" in styles


@pytest.mark.parametrize(
    ("part", "drawn"), [(0, ""), (1, "█▎"), (4, "█████"), (8, "██████████"), (80, "██████████")]
)
def test_bar(part: int, drawn: str):
    assert bar(part, 8, 10) == drawn


def test_bar_in_ascii():
    assert bar(1, 2, 10, ascii_only=True) == "#####"


@pytest.mark.parametrize(
    ("count", "room", "shown"), [(3, 4, [1, 2, 3]), (9, 4, [1, None, 8, 9]), (9, 2, [1, None, 9])]
)
def test_first_and_last_steps_have_columns(count: int, room: int, shown: list[int | None]):
    steps = a_report(
        [entry for n in range(1, count + 1) for entry in (span(n, "forward", 1, 2), step(n))]
    ).steps

    assert [each.step if isinstance(each, Step) else None for each in chosen_steps(steps, room)] == shown
