"""Whether cuDNN tries its algorithms out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.technique import Knob, Maths, Technique
from vramscope.jobs.techniques.refusing import without_layers

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def _on(argument: str, script: Script, work: Work) -> None:
    script.settings.append("torch.backends.cudnn.benchmark = True")


def _refuses(argument: str, work: Work) -> str | None:
    return without_layers(work, "Conv1d", "Conv2d", "Conv3d")


CUDNN_BENCHMARK = Knob(
    "cudnn-benchmark",
    "Whether cuDNN tries its convolution algorithms out",
    "off",
    (
        Technique("off", "cuDNN's heuristics choose the algorithms"),
        Technique(
            "on",
            "the fastest algorithm of each shape is found by trying (torch.backends.cudnn.benchmark)",
            _on,
            _refuses,
            maths=Maths.ORDER,
            price="a slower first step and workspaces of any size; faster afterwards",
            intrusion=2,
        ),
    ),
)
