"""How far a grid of trainings is: bars on a terminal's stderr, nothing where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from vramscope.lab.training.progress import ENDED, EVALUATING, KNOWN, TRAINING, OnProgress, silent
from vramscope.lab.training.progress import Progress as Told
from vramscope.views import grid_words as say

_WIDE = 80
"""On a narrower terminal there is no room for the time."""


@contextmanager
def training_bars() -> Iterator[OnProgress]:
    """What a grid tells how far it is; the bars are gone at the end, a line of each epoch stays."""
    console = Console(stderr=True, highlight=False) if sys.stderr is not None else None
    if console is None or not console.is_terminal:
        yield silent
        return
    with showing(console) as tell:
        yield tell


@contextmanager
def showing(console: Console) -> Iterator[OnProgress]:
    """The bars on a terminal."""
    wide = console.width >= _WIDE
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(24 if wide else 6),
        MofNCompleteColumn(),
        *([TimeElapsedColumn()] if wide else []),
        TextColumn("{task.fields[scores]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        yield _Bars(bars)


class _Bars:
    """One for the cells, one for what is done with the data, each from zero when it begins anew."""

    def __init__(self, bars: Progress) -> None:
        self.bars = bars
        self.cells = bars.add_task("cells", total=None, scores="")
        self.shown = ""
        self.passes: dict[str, TaskID] = {}

    def __call__(self, progress: Told) -> None:
        """Something has happened."""
        what = f"{progress.stage} {progress.what}".strip()
        done = progress.cell if progress.stage in (ENDED, KNOWN) else max(progress.cell - 1, 0)
        self.bars.update(
            self.cells,
            completed=done,
            total=progress.cells or None,
            scores=what,
        )
        if what != self.shown:  # what is short is seen, too
            self.shown = what
            self.bars.refresh()
        if progress.stage in (TRAINING, EVALUATING):
            self._pass(progress)
        elif progress.stage in (ENDED, KNOWN):
            self._end(progress)

    def _pass(self, told: Told) -> None:
        """A step of training or evaluation."""
        if told.stage not in self.passes:
            self.passes[told.stage] = self.bars.add_task(told.stage, total=None, scores="")
        task = self.passes[told.stage]
        if told.step <= 1:
            self.bars.reset(task)
        scores = scores_of(told)
        epoch = f"{told.stage} {told.epoch}/{told.epochs}"
        self.bars.update(
            task, completed=told.step, total=told.steps or None, description=epoch, scores=scores
        )
        if told.steps and told.step == told.steps:
            self._print(f"{told.what}, epoch {told.epoch}, {told.stage}: {scores}")

    def _end(self, told: Told) -> None:
        for task in self.passes.values():
            self.bars.remove_task(task)
        self.passes.clear()
        known = ", known from an earlier run" if told.stage == KNOWN else ""
        self._print(f"{told.what}: {told.verdict}{known}")

    def _print(self, line: str) -> None:
        self.bars.console.print(Text(line, style="dim"))


def scores_of(told: Told) -> str:
    """``loss 4.69, accuracy 3.1 %``; nothing before there are any."""
    if told.loss is None:
        return ""
    accuracy = f", accuracy {say.percent(told.accuracy)}" if told.accuracy is not None else ""
    return f"loss {say.number(told.loss)}{accuracy}"
