"""The staged measurement for the terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from goldens import assert_golden
from rich.cells import cell_len

from vramscope.lab.stages.formula import form_of
from vramscope.lab.stages.value import STAGES, Counted, Holds, Reading, Staged
from vramscope.planning.result import Failure
from vramscope.units import GIB, MIB
from vramscope.views import stages_lab_words as say
from vramscope.views.paragraphs import TextOptions
from vramscope.views.stages_lab_json import STAGES_SCHEMA, stages_lab_json
from vramscope.views.stages_lab_text import stages_lab_text
from vramscope.views.stages_lab_words import scaled

FORMULA = (0, 52, 142, 233, 142, 3958, 142, 3958, 3958, 4048, 413, 413)
PREDICTED = (0, 52, 172, 250, 172, 7602, 1572, 7600, 7600, 8894, 1046, 1028)
PUBLISHED = (0, 52, 172, 250, 172, 7594, 1584, 7612, 7582, 8788, 770, 752)
HELD = (
    None,
    Holds({"input": 52 * MIB}),
    Holds({"input": 52 * MIB, "parameter": 91 * MIB}, 29 * MIB),
    Holds({"input": 52 * MIB, "parameter": 184 * MIB}, 14 * MIB),
    Holds({"input": 52 * MIB, "parameter": 91 * MIB}, 29 * MIB),
    Holds({"input": 52 * MIB, "parameter": 91 * MIB}, 29 * MIB, {"temporary": 7430 * MIB}),
    Holds({"input": 52 * MIB, "parameter": 91 * MIB}, 29 * MIB, {"temporary": 1000 * MIB, "workspace": 400 * MIB}),
    Holds({"input": 52 * MIB, "parameter": 91 * MIB, "activation": 7400 * MIB}, 57 * MIB),
    Holds({"input": 52 * MIB, "parameter": 91 * MIB, "activation": 7400 * MIB}, 57 * MIB),
    Holds({"input": 52 * MIB, "parameter": 91 * MIB, "gradient": 95 * MIB}, 656 * MIB, {"activation": 8000 * MIB}),
    Holds(
        {"input": 52 * MIB, "parameter": 91 * MIB, "gradient": 95 * MIB, "optimizer_state": 181 * MIB},
        609 * MIB,
        {"temporary": 18 * MIB},
    ),
    Holds(
        {"input": 52 * MIB, "parameter": 91 * MIB, "optimizer_state": 181 * MIB}, 204 * MIB, {"gradient": 500 * MIB}
    ),
)  # fmt: skip


def staged(**changes: object) -> Staged:
    readings = tuple(
        Reading(
            stage, form_of(stage), one * MIB, two * MIB, None, three * MIB, holds, int(stage == "backward")
        )
        for stage, one, two, three, holds in zip(STAGES, FORMULA, PREDICTED, PUBLISHED, HELD, strict=True)
    )
    found = Staged(
        source="timm/resnet50?num_classes=102",
        kind="ResNet",
        shapes={"batch": 90, "image": 224},
        precision="fp32",
        parameters=23_717_030,
        card="rtx-3060",
        capacity_bytes=12_628_000_000,
        readings=readings,
        counted=Counted("fvcore", 372_871_388_160, "multiply-add", 1_000_267_740),
        activations={"Conv2d": 3900 * MIB, "BatchNorm2d": 3300 * MIB, "": 200 * MIB},
        published_in="a blog article",
        versions={"torch": "2.14.1+cu130", "cudnn": "9.24.0"},
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def measured() -> Staged:
    """On a card that broke off after the model was built."""
    readings = tuple(
        replace(each, measured_bytes=each.published_bytes if number < 3 else None, published_bytes=None)
        for number, each in enumerate(staged().readings)
    )
    return staged(
        readings=readings,
        measured_on="NVIDIA GeForce RTX 3060",
        why_not_measured="RuntimeError: no",
        published_in="",
    )


def broken() -> Staged:
    """One that found no room when it counted, and knows no more."""
    readings = tuple(
        replace(each, predicted_bytes=None, holds=None, published_bytes=None, retries=0)
        if number > 4
        else each
        for number, each in enumerate(staged().readings)
    )
    failure = Failure("forward", 1, "ResNet.layer2.0.bn1", 138 * MIB, "stages.py:38 in count")
    return staged(readings=readings, counted=None, activations={}, failure=failure, precision="bf16")


SHAPES = {
    "published": lambda: [staged()],
    "measured": lambda: [measured()],
    "broken": lambda: [broken(), staged()],
}


@pytest.mark.parametrize(("name", "width"), [*((name, 100) for name in SHAPES), ("published", 60)])
def test_golden(name: str, width: int):
    text = stages_lab_text(SHAPES[name](), TextOptions(width)).plain

    assert_golden(f"lab_stages_{name}_{width}", text)


@pytest.mark.parametrize("width", [50, 60, 80, 100, 200])
@pytest.mark.parametrize("name", SHAPES)
def test_no_line_is_wider_than_the_terminal(name: str, width: int):
    lines = stages_lab_text(SHAPES[name](), TextOptions(width)).plain.splitlines()

    assert max(map(cell_len, lines)) <= width
    assert all(line.startswith("  ") for line in lines if line)


@pytest.mark.parametrize("name", SHAPES)
def test_a_terminal_that_knows_ascii_only(name: str):
    assert stages_lab_text(SHAPES[name](), TextOptions(ascii_only=True)).plain.isascii()


def test_the_commands_are_the_last_lines():
    text = stages_lab_text([staged()], TextOptions(commands=("vramscope show x.vram",))).plain

    assert text.splitlines()[-1] == "  next            vramscope show x.vram"


def test_the_reasons_of_a_jump_add_up_to_it():
    for one, two in pairwise(HELD[1:]):
        assert one is not None
        assert two is not None
        parts = say.reasons(one, two)
        assert sum(size for _, size in parts) == two.reserved_bytes - one.reserved_bytes


@pytest.mark.parametrize(
    ("size", "text"), [(999, "999"), (23_717_030, "23.7 M"), (1_326_000, "1.33 M"), (4 * 10**12, "4.00 T")]
)
def test_counts_have_three_figures(size: int, text: str):
    assert say.scaled(size) == text


def test_an_error_has_its_sign_and_none_where_there_is_nothing_to_compare_with():
    errors = {each.stage: say.error(each) for each in staged().readings}

    assert errors["import"] == ""
    assert errors["input"] == "0.0 %"
    assert errors["step"] == "+35.8 %"
    assert errors["no_grad forward"] == "−0.8 %"


def test_what_was_measured_is_compared_with_before_what_was_published():
    reading = Reading("model", "x + P", None, 110, 100, 200)

    assert reading.known_bytes == 100
    assert reading.error == pytest.approx(0.1)


def test_json_has_all_of_it():
    told = json.loads(stages_lab_json([staged(), measured()]))

    assert told["schema"] == STAGES_SCHEMA
    assert len(told["models"]) == 2
    first = told["models"][0]["readings"][1]
    assert (first["stage"], first["predicted_bytes"], first["error"]) == ("input", 52 * MIB, 0)
    assert told["models"][0]["readings"][7]["holds"]["live"]["activation"] > 7 * GIB


def test_a_hostile_name_paints_nothing():
    text = stages_lab_text([staged(source="\x1b[31mred\n", activations={"\x1b[1mBold": 1})]).plain

    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("number", "told"),
    [(999, "999"), (907_000, "907 k"), (23_717_030, "23.7 M"), (999_600_000, "1.00 G"), (99_960_000, "100 M")],
)
def test_a_large_number_has_three_figures(number: int, told: str):
    assert scaled(number) == told
