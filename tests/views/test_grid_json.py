"""A grid of trainings as JSON."""

from __future__ import annotations

import json

import pytest
from grid_shapes import SHAPES, article, hostile

from vramscope.views.grid_json import grid_json


@pytest.mark.parametrize("name", SHAPES)
def test_all_of_it_under_its_own_names(name: str):
    grid = SHAPES[name]()
    told = json.loads(grid_json(grid), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))

    assert told.pop("schema") == "vramscope.lab-train/1"
    assert list(told) == list(grid.to_json())
    assert [each["verdict"] for each in told["cells"]] == [each.verdict for each in grid.cells]


def test_bytes_and_losses_are_as_they_are():
    grid = article()
    told = json.loads(grid_json(grid))["cells"][2]

    assert told["predicted"]["process_total_bytes"] == grid.cells[2].predicted.process_total_bytes
    assert told["epochs"][0]["train_loss"] == grid.cells[2].epochs[0].train_loss
    assert told["measured"] is None


def test_a_loss_that_is_no_number_is_null():
    told = json.loads(grid_json(hostile()))["cells"][0]["epochs"]

    assert [each["train_loss"] for each in told] == [None] * 3
    assert told[0]["train_accuracy"] == pytest.approx(0.1)
