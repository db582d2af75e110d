"""Giving activations up and computing them again in the backward."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.facts import SEQ2SEQ
from vramscope.jobs.technique import Knob, Technique, whole_number
from vramscope.jobs.techniques.naming import names_code
from vramscope.jobs.techniques.refusing import against
from vramscope.jobs.techniques.tune import adapted

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

_WRAPPER = "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper"
_KEPT = """\
KEPT = [  # their results are kept, all others computed again
    torch.ops.aten.mm.default,
    torch.ops.aten.bmm.default,
    torch.ops.aten.addmm.default,
    torch.ops.aten.convolution.default,
    torch.ops.aten._scaled_dot_product_flash_attention.default,
    torch.ops.aten._scaled_dot_product_efficient_attention.default,
    torch.ops.aten._scaled_dot_product_cudnn_attention.default,
]"""


def _on(argument: str, script: Script, work: Work) -> None:
    abilities = work.facts.abilities
    if "gradient_checkpointing" in abilities and work.source.library == "hf":
        script.model.append(
            'model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})'
        )
    elif "gradient_checkpointing" in abilities:
        script.model.append("model.enable_gradient_checkpointing()")
    elif "set_grad_checkpointing" in abilities:
        script.model.append("model.set_grad_checkpointing()")
    else:
        _wrap(script, work, work.facts.blocks)


def _every(argument: str, script: Script, work: Work) -> None:
    _wrap(script, work, work.facts.blocks[:: int(argument)])


def _selective(argument: str, script: Script, work: Work) -> None:
    script.imports.update(
        ("import functools", "from torch.utils.checkpoint import create_selective_checkpoint_contexts")
    )
    script.model += [
        _KEPT,
        "contexts = functools.partial(create_selective_checkpoint_contexts, KEPT)",
    ]
    _wrap(script, work, work.facts.blocks, ", context_fn=contexts")


def _wrap(script: Script, work: Work, blocks: tuple[str, ...], extra: str = "") -> None:
    """Puts checkpoint_wrapper around some blocks; peft has moved them by then."""
    script.imports.add(_WRAPPER)
    paths = tuple(f"base_model.model.{path}" for path in blocks) if adapted(work) else blocks
    if work.task == SEQ2SEQ:
        script.model.append(
            "model.get_decoder().config.use_cache = False  # a block that runs twice would fill it twice"
        )
    script.model += [
        f"for name in {names_code(paths)}:",
        f"    model.set_submodule(name, checkpoint_wrapper(model.get_submodule(name){extra}))",
    ]


def _refuses(argument: str, work: Work) -> str | None:
    switches = {"gradient_checkpointing", "set_grad_checkpointing"}.intersection(work.facts.abilities)
    return None if switches else _refuses_blocks(argument, work)


def _refuses_blocks(argument: str, work: Work) -> str | None:
    if not work.facts.blocks:
        return f"{work.source.text} ({work.facts.kind}) has no repeated blocks to checkpoint"
    return None


CHECKPOINT = Knob(
    "checkpoint",
    "Which activations are given up and computed again in the backward",
    "off",
    (
        Technique("off", "all activations are kept"),
        Technique(
            "on",
            "those inside blocks, by the library's own switch if it has one",
            _on,
            _refuses,
            price="the forward runs twice: about a third more time",
            intrusion=4,
        ),
        Technique(
            "every",
            "those inside every n-th block, every:2",
            _every,
            _refuses_blocks,
            argument=whole_number("every"),
            usual="2",
            price="the forward of every n-th block runs twice",
            intrusion=3,
        ),
        Technique(
            "selective",
            "those inside blocks but results of matrix products, convolutions and attention",
            _selective,
            lambda argument, work: (
                _refuses_blocks(argument, work)
                or against(
                    work, "selective checkpointing does not see what hooks have moved", offload="activations"
                )
            ),
            price="cheap operations run twice: some per cent more time",
            intrusion=3,
        ),
    ),
    training_only=True,
)
