"""torch.compile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.technique import Knob, Maths, Technique
from vramscope.jobs.techniques.refusing import against

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def _on(argument: str, script: Script, work: Work) -> None:
    script.model.append("model.compile()  # at the first forward")


def _refuses(argument: str, work: Work) -> str | None:
    return against(
        work, "the loss is computed past the compiled forward", cross_entropy="chunked"
    ) or against(work, "hooks that move activations are not traced", offload="activations")


COMPILE = Knob(
    "compile",
    "torch.compile",
    "off",
    (
        Technique("off", "operations run one by one"),
        Technique(
            "on",
            "the model is compiled by Inductor, which fuses operations and recomputes cheap ones",
            _on,
            _refuses,
            maths=Maths.ORDER,
            price="seconds to minutes of compiling at the first step; faster afterwards",
            intrusion=4,
        ),
    ),
)
