"""Which parameters are trained: `vramscope plan`'s ways, and the article's two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.errors import RecipeError
from vramscope.jobs.knobs import knob_named
from vramscope.jobs.technique import nearest
from vramscope.lab.training import article

if TYPE_CHECKING:
    from vramscope.jobs.script import Script

_SHARED = ("full", "freeze", "lora", "dora")
NAMES = (*_SHARED, article.FREEZE, article.LORA)


def tune_of(text: str) -> str:
    """A way of tuning in its usual form; RecipeError for one that there is not."""
    name = text.partition(":")[0]
    if name not in NAMES:
        raise RecipeError(f"--tune {text}: {nearest(name, NAMES)}")
    if name in _SHARED:
        return knob_named("tune").position(text)
    if name != text:
        raise RecipeError(f"--tune {text}: {name} is as the article has it and takes nothing behind a colon")
    return text


def position_of(tune: str) -> str:
    """The position of the knob `tune` that a way is written with; the article's own are written beside it."""
    return "full" if tune in (article.FREEZE, article.LORA) else tune


def uses_peft(tune: str) -> bool:
    """Adapters are put around the model."""
    return tune == article.LORA or tune.startswith(("lora:", "dora:"))


def write_own(script: Script, tune: str) -> None:
    """Writes what `jobs` does not know."""
    if tune == article.FREEZE:
        script.model.append(article.FREEZE_CODE)
    elif tune == article.LORA:
        script.imports |= {"from peft import LoraConfig, get_peft_model", "from torch import nn"}
        script.model.append(article.LORA_CODE)
