"""What is done with a model: each task writes the model, the data and the loss of its program."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vramscope.jobs.facts import CLASSIFICATION

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

_MODULES = {
    CLASSIFICATION: "image_classification",
}


def task_module(task: str) -> Any:
    """The module of a task: its `write(script, work)` and `usual(facts)`."""
    return importlib.import_module(f"vramscope.jobs.tasks.{_MODULES[task]}")


def task_writer(task: str) -> Callable[[Script, Work], None]:
    """What writes the task's part of a program, before any technique."""
    writer: Callable[[Script, Work], None] = task_module(task).write
    return writer
