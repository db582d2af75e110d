"""What the tasks of text share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.errors import RecipeError
from vramscope.jobs.facts import Facts

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

_LARGE = 1_000_000_000
"""From so many parameters on, models are trained in bf16, and decoders with one sequence at a time."""


def usual_text(facts: Facts) -> dict[str, str]:
    """Eight sequences of at most 512 tokens, in fp32 if the model is not large."""
    precision = "bf16" if facts.parameters > _LARGE else "fp32"
    return {"batch": "8", "seq": str(min(facts.positions or 512, 512)), "precision": precision}


def is_large(facts: Facts) -> bool:
    """A model of more than 1e9 parameters."""
    return facts.parameters > _LARGE


def write_tokens(script: Script, work: Work) -> None:
    """Writes a batch of random tokens without padding, which need no mask; ``inputs`` is what `model` takes."""
    check_length(work, work.recipe.number("seq"))
    script.constants.update(BATCH=work.recipe["batch"], SEQ=work.recipe["seq"])
    script.batch += [
        f"tokens = torch.randint({work.facts.vocabulary}, (BATCH, SEQ), device=device)",
        'return {"input_ids": tokens}',
    ]


def check_length(work: Work, tokens: int) -> None:
    """RecipeError for sequences beyond a table of positions: the real card would stop with an assertion."""
    most = work.facts.positions
    if work.facts.settings.get("learned_positions") and most is not None and tokens > most:
        raise RecipeError(f"seq: {work.source.text} has positions for {most} tokens, not for {tokens}")
