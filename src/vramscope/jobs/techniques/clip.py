"""Clipping gradients before the step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vramscope.errors import RecipeError
from vramscope.jobs.technique import Knob, Maths, Technique
from vramscope.jobs.techniques.refusing import against

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def _norm_of(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        raise RecipeError(f"clip: the largest norm must be a number, not {text!r}") from None
    if not (value > 0 and math.isfinite(value)):
        raise RecipeError(f"clip: the largest norm must be more than 0, not {text}")
    return repr(value)


def _norm(argument: str, script: Script, work: Work) -> None:
    script.before_step.append(f"torch.nn.utils.clip_grad_norm_(trained, {argument})")


def _refuses(argument: str, work: Work) -> str | None:
    why = "the norm of all gradients is not known before the first of them is used"
    return against(work, why, optimizer_in_backward="on")


CLIP = Knob(
    "clip",
    "Clipping gradients",
    "off",
    (
        Technique("off", "gradients are used as they are"),
        Technique(
            "norm",
            "all gradients together are scaled down to a norm: norm:1.0",
            _norm,
            _refuses,
            argument=_norm_of,
            usual="1.0",
            maths=Maths.OTHER,
            price="one more pass over the gradients; GradScaler's are unscaled for it",
            intrusion=2,
        ),
    ),
    training_only=True,
)
