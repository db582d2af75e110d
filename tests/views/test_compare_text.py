"""The comparison of two runs for the terminal, line by line, and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from goldens import assert_golden
from rich.cells import cell_len

from million import million_run
from pairs import PAIRS, full, lora, measured
from vramscope.analysis.compare import compare
from vramscope.views.compare_json import to_json
from vramscope.views.compare_text import compare_text
from vramscope.views.paragraphs import TextOptions

NARROW = ("full_lora", "full_measured")


def shown(name: str, layout: TextOptions) -> str:
    a, b = PAIRS[name]
    return compare_text(compare(a(), b()), layout).plain


@pytest.mark.parametrize(
    ("name", "width"), [*((name, 100) for name in PAIRS), *((name, 80) for name in NARROW)]
)
def test_golden(name: str, width: int):
    text = shown(name, TextOptions(width))

    assert_golden(f"compare_{name}_{width}", text)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("name", PAIRS)
def test_no_line_is_wider_than_the_terminal(name: str, width: int):
    lines = shown(name, TextOptions(width)).splitlines()

    assert max(map(cell_len, lines)) <= width
    assert all(line.startswith("  ") for line in lines if line)


@pytest.mark.parametrize("name", PAIRS)
def test_a_terminal_that_knows_ascii_only(name: str):
    assert shown(name, TextOptions(ascii_only=True)).isascii()


def test_names_are_those_of_the_files():
    text = compare_text(compare(full(), lora()), names=("full.vram", "lora.vram")).plain

    assert "  A               full.vram: predicted" in text
    assert "  B               lora.vram: predicted" in text


def test_what_a_program_names_cannot_paint_the_terminal():
    run = full()
    trace = run.traces[0]
    modules = tuple(
        replace(each, path=each.path.replace("lm_head", "\x1b[31mhead\n")) for each in trace.tables.modules
    )
    painted = replace(
        run, name="\x1b[31mrun\n", traces=(replace(trace, tables=replace(trace.tables, modules=modules)),)
    )

    text = compare_text(compare(painted, lora())).plain

    assert "\x1b" not in text
    assert " [31mhead" in text


def test_at_most_so_many_modules_are_told():
    run, other = million_run(5000), million_run(5000)
    trace = other.traces[0]
    smaller = replace(trace.blocks, size_bytes=trace.blocks.size_bytes // 2)
    text = compare_text(compare(run, replace(other, traces=(replace(trace, blocks=smaller),)))).plain

    table = text.split("the modules that differ most, in what they hold and keep\n")[1].split("\n\n")[0]
    assert 3 < len(table.splitlines()) <= 16


def test_modules_have_residuals_too():
    """Measured − predicted, in whichever order the two are named."""
    larger = replace(lora(), origin="measured")

    shown = [
        compare_text(compare(*pair), TextOptions(100)).plain for pair in ((full(), larger), (larger, full()))
    ]

    for text in shown:
        (row,) = [line.split() for line in text.splitlines() if line.startswith("    lm_head ")]
        assert row[3:] == ["−12.0", "−4.0", "−8.0"]


def test_as_json():
    found = json.loads(to_json(compare(full(), measured())))

    totals = {each["name"]: each for each in found["totals"]}
    assert found["schema"] == "vramscope.diff/1"
    assert found["is_residual"] is True
    assert totals["process total"]["residual_bytes"] == 73 << 20
    assert totals["peak allocated"]["residual_share"] == 0.0
    assert found["conditions"] == [{"name": "cuDNN", "a": "9.24.0", "b": "9.10.2"}]


def test_modules_as_json():
    found = json.loads(to_json(compare(full(), lora())))

    modules = {each["path"]: each for each in found["modules"]}
    assert modules["h.0"]["copies"] == 3
    assert modules["h.0.mlp.lora_A"]["a"] is None
    assert modules["lm_head"]["b"]["gradient_bytes"] == 0


@pytest.mark.parametrize("name", PAIRS)
def test_every_pair_is_json(name: str):
    a, b = PAIRS[name]

    assert json.loads(to_json(compare(a(), b())))["a"]["origin"] == a().origin
