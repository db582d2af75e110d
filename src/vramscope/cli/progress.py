"""How far a plan is: a bar on a terminal's stderr, nothing where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from vramscope.planning.making import Progress as Told


@contextmanager
def progress_bar() -> Iterator[Told]:
    """What a plan tells how far it is; the bar is gone at the end."""
    console = Console(stderr=True) if sys.stderr is not None else None
    if console is None or not console.is_terminal:
        yield _nobody
        return
    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(done: int, total: int | None, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield tell


def _nobody(done: int, total: int | None, what: str) -> None:
    return None
