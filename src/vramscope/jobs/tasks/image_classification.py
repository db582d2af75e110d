"""Training an image classifier on random images and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.facts import Facts
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
    script.imports.add("from torch import nn")
    script.constants.update(BATCH=work.recipe["batch"], IMAGE=work.recipe["image"])
    script.batch += [
        f"images = torch.randn(BATCH, {work.facts.channels}, IMAGE, IMAGE, device=device)",
        f"labels = torch.randint({work.facts.classes}, (BATCH,), device=device)",
        "return images, labels",
    ]
    script.fetch = "images, labels = batch()"
    script.loss.append("loss = nn.functional.cross_entropy(model(images), labels)")
