"""Training a detector of torchvision on random images, each with a few random boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.facts import Facts
from vramscope.jobs.tasks.models import write_model

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

_OBJECTS = 8
"""In each image."""
_IMAGES = "[torch.rand(3, IMAGE, IMAGE, device=device) for _ in range(BATCH)]"


def usual(facts: Facts) -> dict[str, str]:
    """Two images at a time, as in torchvision's own recipes, of the size that the model resizes them to."""
    return {"batch": "2", "image": str(facts.image or 800), "precision": "fp32"}


def write(script: Script, work: Work) -> None:
    """Writes the task's part of the program."""
    write_model(script, work)
    write_inputs(script, work)
    script.constants["OBJECTS"] = str(_OBJECTS)
    script.functions.append(_target(work))
    script.batch[:] = [
        f"images = {_IMAGES}",
        "targets = [target() for _ in range(BATCH)]",
        "return images, targets",
    ]
    script.fetch = "images, targets = batch()"
    script.loss.append("loss = sum(model(images, targets).values())")


def write_inputs(script: Script, work: Work) -> str:
    """Writes a batch of images alone; the code of the forward."""
    script.constants.update(BATCH=work.recipe["batch"], IMAGE=work.recipe["image"])
    script.batch.append(f"return {_IMAGES}")
    script.fetch = "images = batch()"
    return "model(images)"


def _target(work: Work) -> str:
    """The function that makes what is to be found in one image."""
    extra = ""
    if "maskrcnn" in work.source.name:
        extra = '        "masks": torch.ones(OBJECTS, IMAGE, IMAGE, dtype=torch.uint8, device=device),\n'
    if "keypointrcnn" in work.source.name:
        extra = '        "keypoints": torch.ones(OBJECTS, 17, 3, device=device),\n'
    return (
        "def target():\n"
        "    corners = torch.rand(OBJECTS, 2, device=device) * IMAGE / 2\n"
        "    return {\n"
        '        "boxes": torch.cat((corners, corners + IMAGE / 4), dim=1),\n'
        f'        "labels": torch.randint(1, {work.facts.classes}, (OBJECTS,), device=device),\n'
        f"{extra}"
        "    }"
    )
