"""A grid of trainings as a table for spreadsheets and data frames: one line per cell (docs/lab-train.md)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from vramscope.lab.grid import Grid, Memory, Training
from vramscope.run.categories import CATEGORIES
from vramscope.views import grid_words as say

Value = str | int | float | None

_PEAKS = ("allocated_bytes", "reserved_bytes", "process_total_bytes")
HEAD = (
    *("cell", "precision", "tune", "verdict", "why_not", "parameters", "trainable"),
    *("seconds_per_step", "shortest_step_seconds", "samples_per_second"),
    *("epochs", "steps", "seconds", "train_loss", "train_accuracy", "test_loss", "test_accuracy"),
    *(f"predicted_{peak}" for peak in _PEAKS),
    *("predicted_fits", "predicted_process_total_change_bytes"),
    *(f"predicted_{category}_bytes" for category in CATEGORIES),
    *(f"measured_{peak}" for peak in _PEAKS),
    *("article_nvitop_gb", "article_change_gb", "why"),
    *("model", "data", "device", "batch", "image", "optimizer", "seed"),
    *("card", "predicted_batch", "predicted_image"),
)


def grid_csv(grid: Grid) -> str:
    """The table with a line of headings; what is not known is empty, losses are those of the last epoch."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(HEAD)
    table.writerows(tuple(_values(grid, number, cell)) for number, cell in enumerate(grid.cells, 1))
    return text.getvalue()


def _values(grid: Grid, number: int, cell: Training) -> Iterator[Value]:
    yield from (
        number,
        cell.precision,
        cell.tune,
        cell.verdict,
        cell.why_not,
        cell.parameters,
        cell.trainable,
    )
    yield from (cell.seconds_per_step, cell.shortest_step_seconds, cell.samples_per_second)
    yield from _epochs(cell)
    yield from _peaks(cell.predicted)
    yield None if cell.predicted_fits is None else int(cell.predicted_fits)
    yield say.process_change(grid, cell)
    yield from _categories(cell.predicted)
    yield from _peaks(cell.measured)
    yield from (say.read(grid, cell), say.article_change(grid, cell), "; ".join(cell.why))
    yield from (grid.model, grid.data, grid.device, grid.batch, grid.image, grid.optimizer, grid.seed)
    yield from (grid.card, grid.predicted_batch, grid.predicted_image)


def _epochs(cell: Training) -> Iterator[Value]:
    """How many there were, their steps and seconds, and what the last one ended with."""
    found = say.last(cell)
    if found is None:
        yield from (0, *[None] * 6)
        return
    yield from (len(cell.epochs), sum(each.steps for each in cell.epochs))
    yield round(sum(each.seconds for each in cell.epochs), 3)
    yield from (found.train_loss, found.train_accuracy, found.test_loss, found.test_accuracy)


def _peaks(memory: Memory | None) -> Iterator[Value]:
    yield from (getattr(memory, peak) if memory else None for peak in _PEAKS)


def _categories(memory: Memory | None) -> Iterator[Value]:
    """A category that holds nothing is 0, but nothing is known of any where nothing was followed."""
    held = memory.categories if memory else {}
    yield from (held.get(category, 0) if held else None for category in CATEGORIES)
