"""Which layers adapters are put on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vramscope.errors import RecipeError
from vramscope.jobs.technique import AUTO, Knob, Maths, Technique

if TYPE_CHECKING:
    from vramscope.jobs.work import Work


def _pattern(text: str) -> str:
    """A regular expression for the ends of modules' names; RecipeError if it is none."""
    try:
        re.compile(text)
    except re.error as error:
        raise RecipeError(
            f"targets={text}: {error}; write names with | between them, as q_proj|v_proj"
        ) from None
    if not text or '"' in text or "," in text:
        raise RecipeError(f"targets={text}: write names with | between them, as q_proj|v_proj")
    return text


def ending(pattern: str) -> str:
    """The code of the regular expression that peft matches against whole names."""
    return f'r"(.*\\.)?({pattern})"'


def _refuses(argument: str, work: Work) -> str | None:
    tune = work.recipe["tune"]
    return None if tune.startswith(("lora:", "dora:", "qlora:")) else f"tune={tune} has no adapters"


TARGETS = Knob(
    "targets",
    "Which layers adapters are put on, by the ends of their names",
    AUTO,
    (
        Technique(
            "pattern",
            "names with | between them, q_proj|v_proj, or any regular expression",
            refuses=_refuses,
            maths=Maths.OTHER,
            price="the other layers learn nothing",
            intrusion=6,
        ),
    ),
    number=_pattern,
    training_only=True,
)
