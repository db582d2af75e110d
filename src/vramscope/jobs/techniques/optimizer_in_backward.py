"""Stepping each parameter as soon as its gradient is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.technique import Knob, Maths, Technique
from vramscope.jobs.techniques.optimizer import brings_its_own, constructor, import_optimizer
from vramscope.jobs.techniques.refusing import against

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

_HOOKS = """\

def step_one(parameter):
    \"\"\"Called in the backward, as soon as the parameter's gradient is whole.\"\"\"
    steppers[parameter].step()
    steppers[parameter].zero_grad()


for each in trained:
    each.register_post_accumulate_grad_hook(step_one)"""


def _on(argument: str, script: Script, work: Work) -> None:
    import_optimizer(script, work)
    script.optimizer += [f"steppers = {{each: {constructor(work, '[each]')} for each in trained}}", _HOOKS]
    script.optimizers = []


def _refuses(argument: str, work: Work) -> str | None:
    if work.recipe["accumulate"] != "1":
        return f"accumulate={work.recipe['accumulate']} needs the gradients after the first backward"
    if brings_its_own(work):
        return "the Job makes one optimizer for all parameters"
    return against(work, "GradScaler looks at all gradients before it steps", precision="amp-fp16")


OPTIMIZER_IN_BACKWARD = Knob(
    "optimizer-in-backward",
    "Whether each parameter steps as soon as its gradient is there",
    "off",
    (
        Technique("off", "all gradients first, then the step"),
        Technique(
            "on",
            "each gradient is used in the backward and freed at once",
            _on,
            _refuses,
            maths=Maths.ORDER,
            price="no clipping, scaling or accumulation of gradients; one small optimizer per parameter",
            intrusion=4,
        ),
    ),
    training_only=True,
)
