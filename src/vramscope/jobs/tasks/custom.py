"""Training the user's own module on its own batches with its own loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.facts import Facts
from vramscope.jobs.tasks.models import write_model

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def usual(facts: Facts) -> dict[str, str]:
    """A batch of eight; types as torch makes them."""
    return {"batch": "8", "precision": "fp32"}


def write(script: Script, work: Work) -> None:
    """Writes the task's part of the program."""
    write_model(script, work)
    script.loss.append(f"loss = {write_inputs(script, work)}")
    if "own_optimizer" in work.facts.abilities:
        script.own_optimizer = "optimizer = job.optimizer(trained)"


def write_inputs(script: Script, work: Work) -> str:
    """Writes how a batch is made; the code of the loss, which is the only call of the model that is known."""
    script.constants["BATCH"] = work.recipe["batch"]
    script.batch += ["with device:", "    return job.batch(BATCH)"]
    return "job.loss(model, inputs)"
