"""Training an image classifier on random images and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.facts import Facts
from vramscope.jobs.source import HF
from vramscope.jobs.tasks.models import write_model

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def usual(facts: Facts) -> dict[str, str]:
    """The positions of the knobs that this task needs and that nobody turned."""
    return {"batch": "32", "image": str(facts.image or 224), "precision": "fp32"}


def write(script: Script, work: Work) -> None:
    """Writes the task's part of the program."""
    write_model(script, work)
    forward = write_inputs(script, work)
    script.imports.add("from torch import nn")
    script.batch[:] = [
        f"images = {_images(work)}",
        f"labels = torch.randint({work.facts.classes}, (BATCH,), device=device)",
        "return images, labels",
    ]
    script.fetch = "images, labels = batch()"
    logits = f"{forward}.logits" if work.source.library == HF else forward
    script.loss.append(f"loss = nn.functional.cross_entropy({logits}, labels)")


def write_inputs(script: Script, work: Work) -> str:
    """Writes a batch of images alone; the code of the forward."""
    script.constants.update(BATCH=work.recipe["batch"], IMAGE=work.recipe["image"])
    script.batch.append(f"return {_images(work)}")
    script.fetch = "images = batch()"
    return "model(images)"


def _images(work: Work) -> str:
    return f"torch.randn(BATCH, {work.facts.channels}, IMAGE, IMAGE, device=device)"
