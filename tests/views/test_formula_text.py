"""Formulas for the terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from formula_shapes import held, inference
from goldens import assert_golden
from rich.cells import cell_len
from rich.text import Text

from vramscope.cards import find_card
from vramscope.theory.catalogue import formula_of
from vramscope.theory.training import sheet
from vramscope.units import format_gb
from vramscope.views import formula_words as say
from vramscope.views.formula_held_text import held_text
from vramscope.views.formula_json import FORMULA_SCHEMA, formulas_json, held_json, list_json, sheet_json
from vramscope.views.formula_text import formulas_text, list_text, sheet_text
from vramscope.views.paragraphs import TextOptions

NAMED = (
    "linear:inputs=4096,outputs=11008,rows=2048",
    "kv-cache:layers=32,batch=1,seq=4096,head=128,heads=32",
)
SHAPES: dict[str, Callable[[TextOptions], Text]] = {
    "sheet": lambda layout: sheet_text(sheet(11_000_000_000), layout),
    "sheet_card": lambda layout: sheet_text(
        sheet(
            7_000_000_000,
            optimizer="adafactor",
            precision="bf16",
            tokens=4096,
            card=find_card("rtx-4090"),
            ranks=4,
        ),
        layout,
    ),
    "named": lambda layout: formulas_text([formula_of(each) for each in NAMED], layout),
    "list": lambda layout: list_text([("linear", "A matrix product.", "linear:inputs=…,bias=1")], layout),
    "held": lambda layout: held_text(held(), layout),
    "held_inference": lambda layout: held_text(inference(), layout),
}


@pytest.mark.parametrize(
    ("name", "width"), [*((name, 100) for name in SHAPES), ("sheet_card", 60), ("held", 60)]
)
def test_golden(name: str, width: int):
    text = SHAPES[name](TextOptions(width)).plain

    assert_golden(f"formula_{name}_{width}", text)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("name", SHAPES)
def test_no_line_is_wider_than_the_terminal(name: str, width: int):
    lines = SHAPES[name](TextOptions(width)).plain.splitlines()

    assert max(map(cell_len, lines)) <= width
    assert all(line.startswith("  ") for line in lines if line)


@pytest.mark.parametrize("name", SHAPES)
def test_a_terminal_that_knows_ascii_only(name: str):
    assert SHAPES[name](TextOptions(ascii_only=True)).plain.isascii()


def test_the_commands_are_the_last_lines():
    text = held_text(held(), TextOptions(commands=("vramscope plan timm/resnet18",))).plain

    assert text.splitlines()[-1] == "  next            vramscope plan timm/resnet18"


def test_the_invented_runs_sums_close_as_real_ones_do():
    assert held().check() == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"asked_bytes": 5}, "blocks are smaller than what is in them"),
        ({"unsplit_bytes": 0}, "parts 46760960 != run 46810112"),
    ],
)
def test_a_sum_that_does_not_close_is_found(change: dict[str, int], told: str):
    from dataclasses import replace

    first, *rest = held().rows
    change = {"rounding_bytes": -1, **change} if "asked_bytes" in change else change
    broken = held(rows=(replace(first, **change), *rest))

    assert any(told in each for each in broken.check())


def test_each_row_of_the_table_adds_up_in_its_own_digits():
    lines = held_text(held(), TextOptions(100)).plain.splitlines()
    row = next(line for line in lines if line.strip().startswith("gradients ")).split("█")[0]
    formula, unsplit, run = map(float, re.findall(r"[\d.]+", row))

    assert formula + unsplit == pytest.approx(run, abs=0.11)


@pytest.mark.parametrize(
    ("metric", "value", "told"),
    [
        ("saved_bytes", 1536, ("saved", "1.50 KiB (1,536 bytes)")),
        ("forward_flops", 2_000_000, ("forward FLOPs", "2.00 M (2,000,000)")),
        ("seconds", 0.00274, ("time", "2.74 ms")),
        ("seconds", 5000.0, ("time", "5,000 s")),
        ("seconds", None, ("seconds", "not known")),
        ("flops_per_s", 3.12e14, ("rate", "312.0 TFLOPS")),
        ("parameters", 12288, ("parameters", "12,288")),
        ("share", 0.25, ("share", "0.25")),
    ],
)
def test_a_value_has_its_unit(metric: str, value: float | None, told: tuple[str, str]):
    assert say.value(metric, value) == told


def test_gb_are_decimal():
    assert format_gb(52 * 10**9) == "52.00"
    assert format_gb(1_234_567_890_123) == "1,234.57"


def test_json_has_the_sheet_with_its_sums():
    told = json.loads(sheet_json(sheet(1000, tokens=5)))
    first = told["sheet"]["parts"][0]

    assert told["schema"] == FORMULA_SCHEMA == "vramscope.formula/1"
    assert (first["scheme"], first["lasting_bytes"], first["total_bytes"]) == ("fp32", 16_000, 16_000)
    assert [each["claim"]["per_parameter"] for each in told["sheet"]["claims"]] == [16, 20, 20, 24, 16, 4]
    assert told["sheet"]["step"][0]["values"]["step_flops"] == 30_000


def test_json_has_formulas_and_what_there_are():
    told = json.loads(formulas_json([formula_of(NAMED[0])]))
    listed = json.loads(list_json([("linear", "A product.", "linear:…")]))

    assert told["formulas"][0]["given"]["outputs"] == 11008
    assert listed["catalogue"] == [{"name": "linear", "summary": "A product.", "usage": "linear:…"}]


def test_json_has_a_run_whose_rows_add_up():
    told = json.loads(held_json(held()))["model"]

    for row in told["rows"]:
        parts = (row[f"{name}_bytes"] or 0 for name in ("formula", "beyond", "rounding", "unsplit"))
        assert sum(parts) == row["run_bytes"]
    assert told["run_bytes"] == sum(row["run_bytes"] for row in told["rows"])
    assert told["others"][0]["formula"]["values"]["parameters"] == 4 * (64 + 32)


def test_a_hostile_name_paints_nothing():
    assert "\x1b" not in held_text(held(source="\x1b[31mred\n", model="\x1b[1m")).plain
