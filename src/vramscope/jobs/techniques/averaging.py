"""A moving average of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.technique import Knob, Maths, Technique
from vramscope.jobs.techniques.refusing import against

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def _on(argument: str, script: Script, work: Work) -> None:
    script.imports.add("from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn")
    script.model.append("average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))")
    script.after_step.append("average.update_parameters(model)")


def _refuses(argument: str, work: Work) -> str | None:
    return against(work, "there is no average of 4-bit weights", tune="qlora")


EMA = Knob(
    "ema",
    "A moving average of the parameters",
    "off",
    (
        Technique("off", "no average is kept"),
        Technique(
            "on",
            "a second copy of the parameters follows them slowly (AveragedModel)",
            _on,
            _refuses,
            maths=Maths.OTHER,
            price="one more copy of all parameters; training itself is not changed",
            intrusion=2,
        ),
    ),
    training_only=True,
)
