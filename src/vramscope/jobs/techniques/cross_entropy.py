"""How the loss of a large vocabulary is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.facts import CAUSAL_LM
from vramscope.jobs.source import HF
from vramscope.jobs.technique import Knob, Maths, Technique, whole_number
from vramscope.jobs.techniques.tune import adapted

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

_CHUNKED = '''\
def chunk_loss(hidden, labels):
    """The loss of some tokens; its logits live in here only."""
    return nn.functional.cross_entropy(head(hidden).float(), labels, reduction="sum")


def next_token_loss(hidden, labels):
    """The mean loss of the tokens that come next, a part of them at a time."""
    hidden, labels = hidden[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    parts = zip(hidden.chunk(CHUNKS), labels.chunk(CHUNKS))
    return sum(checkpoint(chunk_loss, *part, use_reentrant=False) for part in parts) / labels.numel()'''


def _chunked(argument: str, script: Script, work: Work) -> None:
    script.imports.update(("from torch import nn", "from torch.utils.checkpoint import checkpoint"))
    script.constants["CHUNKS"] = argument
    script.functions.append(_CHUNKED)
    whole = "model.get_base_model()" if adapted(work) else "model"
    script.model += [
        f"body, head = {whole}.base_model, {whole}.get_output_embeddings()",
    ]
    script.loss[:] = [
        'hidden = body(input_ids=inputs["input_ids"]).last_hidden_state',
        'loss = next_token_loss(hidden, inputs["labels"])',
    ]


def _liger(argument: str, script: Script, work: Work) -> None:
    script.imports.add("from liger_kernel.transformers import _apply_liger_kernel_to_instance")
    whole = "model.get_base_model()" if adapted(work) else "model"
    script.model.append(
        f"_apply_liger_kernel_to_instance({whole}, rope=False, rms_norm=False, swiglu=False)  # the loss alone"
    )


def _refuses(argument: str, work: Work) -> str | None:
    if work.source.library != HF or work.task != CAUSAL_LM:
        return f"it is for causal-lm with models of transformers; task={work.task} has no large vocabulary"
    return None


CROSS_ENTROPY = Knob(
    "cross-entropy",
    "How the loss of a large vocabulary is computed",
    "plain",
    (
        Technique("plain", "all logits at once, then the loss, as the model does it"),
        Technique(
            "chunked",
            "head and loss for a part of the tokens at a time, chunked:8 parts: the logits never exist as a whole",
            _chunked,
            _refuses,
            argument=whole_number("chunked"),
            usual="8",
            maths=Maths.ORDER,
            price="the head's product runs twice",
            intrusion=3,
        ),
        Technique(
            "liger",
            "Liger's fused kernel of head and loss",
            _liger,
            _refuses,
            maths=Maths.ORDER,
            price="kernels of another library, for the model types that it knows",
            intrusion=3,
            packages=("liger_kernel",),
        ),
    ),
    training_only=True,
)
