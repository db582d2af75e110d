"""Answering a prompt token by token, with a cache of keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.facts import SEQ2SEQ, Facts
from vramscope.jobs.tasks.models import transformers_import, write_model
from vramscope.jobs.tasks.texts import check_length, usual_text, write_tokens

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def usual(facts: Facts) -> dict[str, str]:
    """One prompt in bf16, answered with 128 tokens."""
    return {**usual_text(facts), "batch": "1", "precision": "bf16", "new-tokens": "128"}


def write(script: Script, work: Work) -> None:
    """Writes the task's part of the program: one answer, as long as it was asked for whatever is said in it."""
    write_model(script, work)
    write_tokens(script, work)
    check_length(work, _longest(work))
    script.imports.remove(transformers_import(work))
    script.imports.add(f"{transformers_import(work)}, GenerationConfig")
    script.constants["NEW_TOKENS"] = work.recipe["new-tokens"]
    script.batch[-1] = 'return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}'
    script.model += [
        "model.eval()",
        "generation = GenerationConfig(max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, pad_token_id=0)",
    ]
    script.run.append("answers = model.generate(**inputs, generation_config=generation)")
    script.steps = 1


def _longest(work: Work) -> int:
    """The longest sequence that goes through the model, in tokens."""
    new = work.recipe.number("new-tokens")
    return new if work.facts.tasks[0] == SEQ2SEQ else work.recipe.number("seq") + new
