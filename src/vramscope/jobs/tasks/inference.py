"""The forward alone, without gradients, on the inputs of the task that the model is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vramscope.jobs.facts import CAUSAL_LM, CLASSIFICATION, INFERENCE, Facts
from vramscope.jobs.tasks import task_module
from vramscope.jobs.tasks.models import write_model
from vramscope.jobs.tasks.texts import is_large

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def usual(facts: Facts) -> dict[str, str]:
    """As for the training of the model, but texts in bf16."""
    positions: dict[str, str] = _like(facts).usual(facts)
    if facts.vocabulary is not None:
        positions["precision"] = "bf16"
        positions["batch"] = "1" if is_large(facts) else positions["batch"]
    return positions


def write(script: Script, work: Work) -> None:
    """Writes the task's part of the program; nothing of a batch stays beside the next one."""
    write_model(script, work)
    script.model.append("model.eval()")
    script.contexts.append("torch.inference_mode()")
    script.run += [f"outputs = {_like(work.facts).write_inputs(script, work)}", "del outputs"]


def _like(facts: Facts) -> Any:
    """The task whose inputs the model takes; models for nothing in particular take texts or images."""
    if facts.tasks[0] != INFERENCE:
        return task_module(facts.tasks[0])
    return task_module(CAUSAL_LM if facts.vocabulary is not None else CLASSIFICATION)
