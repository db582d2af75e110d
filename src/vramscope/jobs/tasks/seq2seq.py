"""Training an encoder with a decoder on random texts, the answer as long as the question."""

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
    """Writes the task's part of the program; the model itself shifts the labels into the decoder's input."""
    write_model(script, work)
    write_tokens(script, work)
    script.batch[-1:] = [
        f"labels = torch.randint({work.facts.vocabulary}, (BATCH, SEQ), device=device)",
        'return {"input_ids": tokens, "labels": labels}',
    ]
    script.loss.append("loss = model(**inputs, use_cache=False).loss  # the cache is for generation only")


def write_inputs(script: Script, work: Work) -> str:
    """Writes a batch of questions with the decoder's tokens; the code of the forward."""
    write_tokens(script, work)
    script.batch[-1] = 'return {"input_ids": tokens, "decoder_input_ids": tokens}'
    return "model(**inputs)"
