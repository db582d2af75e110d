"""Training a decoder to predict the next token of random texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.facts import Facts
from vramscope.jobs.tasks.models import write_model
from vramscope.jobs.tasks.texts import is_large, usual_text, write_tokens

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def usual(facts: Facts) -> dict[str, str]:
    """As for all texts, but one sequence at a time for a large model."""
    return {**usual_text(facts), **({"batch": "1"} if is_large(facts) else {})}


def write(script: Script, work: Work) -> None:
    """Writes the task's part of the program."""
    write_model(script, work)
    write_tokens(script, work)
    script.model.append("model.config.use_cache = False  # keys and values are kept for generation only")
    script.batch[-1] = 'return {"input_ids": tokens, "labels": tokens}'
    script.loss.append("loss = model(**inputs).loss")


def write_inputs(script: Script, work: Work) -> str:
    """Writes a batch of tokens alone; the code of the forward."""
    write_tokens(script, work)
    return "model(**inputs)"
