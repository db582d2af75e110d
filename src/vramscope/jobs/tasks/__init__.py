"""What is done with a model: each task writes the model, the data and the loss of its program.

A task's module has `usual(facts)`, the positions of the knobs that it needs where nobody turned them, and
`write(script, work)`.  Those that train also have `write_inputs(script, work)`, which writes a batch without targets
and returns the code of the forward: inference is made of it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vramscope.jobs.facts import (
    CAUSAL_LM,
    CLASSIFICATION,
    CUSTOM,
    DETECTION,
    DIFFUSION,
    GENERATE,
    INFERENCE,
    MASKED_LM,
    SEQ2SEQ,
)

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

_MODULES = {
    CLASSIFICATION: "image_classification",
    DETECTION: "detection",
    CAUSAL_LM: "causal_lm",
    MASKED_LM: "masked_lm",
    SEQ2SEQ: "seq2seq",
    DIFFUSION: "diffusion",
    CUSTOM: "custom",
    INFERENCE: "inference",
    GENERATE: "generate",
}


def task_module(task: str) -> Any:
    """The module of a task: its `write(script, work)` and `usual(facts)`."""
    return importlib.import_module(f"vramscope.jobs.tasks.{_MODULES[task]}")


def task_writer(task: str) -> Callable[[Script, Work], None]:
    """What writes the task's part of a program, before any technique."""
    writer: Callable[[Script, Work], None] = task_module(task).write
    return writer
