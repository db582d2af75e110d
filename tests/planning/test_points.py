"""The cells of a matrix, before anything runs."""

from __future__ import annotations

import pytest

from vramscope.errors import RecipeError, UnknownCardError, UsageError
from vramscope.jobs.facts import Facts
from vramscope.jobs.recipe import recipe_of
from vramscope.jobs.source import parse_source
from vramscope.planning.cell import Cell, cell_from
from vramscope.planning.points import Request, cell_of, points_of, request_of

RESNET = Facts(tasks=("image-classification", "inference"), kind="ResNet", image=224, classes=1000)
SOURCE = parse_source("timm/resnet18")


def request(**fields) -> Request:
    return request_of(Request(SOURCE, **fields))


def test_every_combination_runs_on_every_card():
    asked = request(vary={"precision": ("fp32", "bf16"), "batch": ("8", "16")}, cards=("rtx-3060", "h100"))

    points = points_of(asked, RESNET)

    assert [point.number for point in points] == list(range(1, 9))
    assert [tuple(point.turned.values()) for point in points[::2]] == [
        ("fp32", "8"), ("fp32", "16"), ("bf16", "8"), ("bf16", "16"),
    ]  # fmt: skip
    assert [point.card for point in points[:2]] == ["rtx-3060", asked.cards[1]]


def test_values_and_cards_that_are_named_twice_count_once():
    asked = request(vary={"tune": ("full", "full")}, cards=("rtx-3060", "RTX 3060"))

    assert asked.vary == {"tune": ("full",)}
    assert asked.cards == ("rtx-3060",)


def test_a_point_that_cannot_run_says_why_and_the_rest_stands():
    asked = request(recipe=recipe_of({"task": "inference"}), vary={"optimizer": ("adamw", "sgd")})

    first, second = points_of(asked, RESNET)

    assert first.objection == ""
    assert second.objection == "optimizer=sgd: inference trains nothing"


def test_a_task_that_the_model_is_not_for_is_an_objection():
    (point,) = points_of(request(recipe=recipe_of({"task": "generate"})), RESNET)

    assert point.work is None
    assert point.objection == (
        "task=generate: timm/resnet18 (ResNet) cannot be used for it; it can for image-classification, inference"
    )


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"vary": {"precisoin": ("fp32",)}}, RecipeError, "there is no 'precisoin'; did you mean precision?"),
        (
            {"vary": {"precision": ("fp23",)}},
            RecipeError,
            "precision=fp23: there is no 'fp23'; did you mean fp32",
        ),
        ({"vary": {"batch": ("0",)}}, RecipeError, "batch must be at least 1"),
        ({"vary": {"batch": ("many",)}}, RecipeError, "batch must be a whole number, not 'many'"),
        ({"vary": {"batch": ()}}, RecipeError, "vary batch: write its values"),
        ({"cards": ("rtx-3061",)}, UnknownCardError, "did you mean"),
        (
            {"vary": {"batch": tuple(map(str, range(1, 20_000)))}},
            UsageError,
            "19,999 cells are more than 10,000",
        ),
        ({"used_bytes": 1 << 40}, UsageError, "--used leaves nothing of rtx-4090"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(fields, error, said):
    with pytest.raises(error, match="(?s).*" + said.replace("(", r"\(")):
        request(**fields)


def test_a_cell_is_plain_values_with_a_key_of_all_that_decides_its_result():
    asked = request(cards=("rtx-3060",))
    (point,) = points_of(asked, RESNET)
    cell = cell_of(point.work, point.card, asked)

    assert 'timm.create_model("resnet18")' in cell.program
    assert cell_from(dict(vars_of(cell))) == cell
    others = [
        cell_of(point.work, "h100", asked),
        cell_of(point.work, point.card, request(used_bytes=1 << 30)),
        cell_of(point.work, point.card, request(memory_bytes=8 << 30)),
        cell_of(point.work, point.card, asked, history=False),
    ]
    assert len({each.key for each in (cell, *others)}) == 5


def test_what_others_hold_is_taken_off_the_card():
    cell = Cell("", "x", "rtx-3060", memory_bytes=10 << 30, used_bytes=3 << 30)

    assert cell.capacity_bytes == cell.setting().memory_bytes == 7 << 30
    assert cell.unlimited().used_bytes == 0


def vars_of(cell: Cell):
    return {name: getattr(cell, name) for name in Cell.__dataclass_fields__}
