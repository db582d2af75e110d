"""Training an encoder to find the tokens of random texts that are masked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.tasks.models import write_model
from vramscope.jobs.tasks.texts import usual_text as usual
from vramscope.jobs.tasks.texts import write_tokens

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

__all__ = ["usual", "write", "write_inputs"]


def write(script: Script, work: Work) -> None:
    """Writes the task's part of the program: the loss is of the 15 % of the tokens that are masked."""
    write_model(script, work)
    write_tokens(script, work)
    script.batch[-1:] = [
        "hidden = torch.rand(BATCH, SEQ, device=device) < 0.15",
        'return {"input_ids": tokens.masked_fill(hidden, MASK), "labels": tokens.masked_fill(~hidden, -100)}',
    ]
    script.constants["MASK"] = "0"
    script.loss.append("loss = model(**inputs).loss")


def write_inputs(script: Script, work: Work) -> str:
    """Writes a batch of tokens alone; the code of the forward."""
    write_tokens(script, work)
    return "model(**inputs)"
