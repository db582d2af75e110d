"""What steps the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.technique import Knob, Technique

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def _adamw(argument: str, script: Script, work: Work) -> None:
    script.optimizer.append("optimizer = torch.optim.AdamW(trained, lr=1e-4)")


OPTIMIZER = Knob(
    "optimizer",
    "What steps the parameters",
    "adamw",
    (Technique("adamw", "AdamW", _adamw),),
    training_only=True,
)
