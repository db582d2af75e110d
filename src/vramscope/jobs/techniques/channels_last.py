"""The order of images in memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vramscope.jobs.facts import CUSTOM, DETECTION
from vramscope.jobs.technique import Knob, Maths, Technique
from vramscope.jobs.techniques.refusing import without_layers

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

_IMAGES = re.compile(r"torch\.randn\((BATCH, \w+, [^,]+, [^,]+), device=device\)")
"""How tasks make a batch of images."""
_MADE = r"torch.empty(\1, device=device, memory_format=torch.channels_last).normal_()"


def _on(argument: str, script: Script, work: Work) -> None:
    script.model.append("model = model.to(memory_format=torch.channels_last)")
    script.batch[:] = [_IMAGES.sub(_MADE, line) for line in script.batch]


def _refuses(argument: str, work: Work) -> str | None:
    if work.facts.image is None:
        return f"{work.source.text} ({work.facts.kind}) takes no images"
    if DETECTION in work.facts.tasks or work.task == CUSTOM:
        return f"{work.source.text} does not take its images as one tensor of four dimensions"
    return without_layers(work, "Conv2d")


CHANNELS_LAST = Knob(
    "channels-last",
    "The order of images in memory",
    "off",
    (
        Technique("off", "channel by channel (NCHW)"),
        Technique(
            "on",
            "pixel by pixel (NHWC), for the model and its images",
            _on,
            _refuses,
            maths=Maths.ORDER,
            price="nothing; faster in fp16 and bf16, sometimes slower in fp32",
            intrusion=1,
        ),
    ),
)
