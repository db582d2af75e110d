"""A grid of trainings as CSV."""

from __future__ import annotations

import csv
import io

import pytest
from grid_shapes import HOSTILE, SHAPES, article, hostile, mixed

from vramscope.views.grid_csv import HEAD, grid_csv


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("name", SHAPES)
def test_a_line_for_each_cell_and_always_the_same_columns(name: str):
    found = list(csv.reader(io.StringIO(grid_csv(SHAPES[name]()))))

    assert found[0] == list(HEAD)
    assert len(found) == len(SHAPES[name]().cells) + 1
    assert {len(line) for line in found} == {len(HEAD)}


def test_bytes_are_whole_and_changes_are_against_the_first():
    grid = article()
    first, _, lora, *_ = rows(grid_csv(grid))

    assert int(first["predicted_process_total_bytes"]) == grid.cells[0].predicted.process_total_bytes
    assert first["predicted_process_total_change_bytes"] == ""
    assert int(lora["predicted_process_total_change_bytes"]) > 0
    assert (lora["article_nvitop_gb"], lora["article_change_gb"]) == ("5.1", "0.1")


def test_what_is_not_known_is_empty_and_what_is_nothing_is_0():
    full, failed, cannot, *_ = rows(grid_csv(mixed()))

    assert full["predicted_kv_cache_bytes"] == "0"
    assert full["measured_allocated_bytes"] == ""
    assert failed["train_loss"] == ""
    assert cannot["predicted_activation_bytes"] == cannot["predicted_fits"] == ""
    assert cannot["why_not"].startswith("tune=lora:4 needs peft")


def test_losses_are_those_of_the_last_epoch():
    first, second, _ = rows(grid_csv(hostile()))

    assert (second["epochs"], second["steps"], second["seconds"]) == ("3", "192", "37.5")
    assert float(second["train_loss"]) == pytest.approx(4.7 / 8)
    assert (first["train_loss"], first["test_loss"]) == ("nan", "inf")
    assert second["tune"] == HOSTILE
