"""How gradients are given up after a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.technique import Knob, Technique
from vramscope.jobs.techniques.refusing import against

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def _zero(argument: str, script: Script, work: Work) -> None:
    script.zero_grad = "{}.zero_grad(set_to_none=False)"


def _refuses(argument: str, work: Work) -> str | None:
    return against(work, "each gradient is gone as soon as it is used", optimizer_in_backward="on")


ZERO_GRAD = Knob(
    "zero-grad",
    "How gradients are given up after a step",
    "none",
    (
        Technique("none", "gradients are freed (set_to_none=True, PyTorch's default)"),
        Technique(
            "zero",
            "gradients stay and are filled with zeros (set_to_none=False)",
            _zero,
            _refuses,
            price="all gradients are there during the forward, too",
            intrusion=1,
        ),
    ),
    training_only=True,
)
