"""How attention is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.source import HF, TIMM
from vramscope.jobs.technique import Knob, Maths, Technique

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

_LEAST_LINEAR = 4
"""A model of timm with fewer linear layers has no attention."""


def _eager(argument: str, script: Script, work: Work) -> None:
    if work.source.library == HF:
        script.settings.append('config._attn_implementation = "eager"')
    else:
        script.imports.add("from timm.layers import set_fused_attn")
        script.settings.append("set_fused_attn(False)")


def _flash(argument: str, script: Script, work: Work) -> None:
    script.settings.append('config._attn_implementation = "flash_attention_2"')


def _refuses_eager(argument: str, work: Work) -> str | None:
    if work.source.library not in (HF, TIMM):
        return "only models of transformers and timm have a switch for it"
    if work.source.library == HF and "sdpa" not in work.facts.abilities:
        return f"{work.facts.kind} has no other attention"
    if work.source.library == TIMM and work.facts.layers.get("Linear", 0) < _LEAST_LINEAR:
        return f"{work.source.text} ({work.facts.kind}) has no attention"
    return None


def _refuses_flash(argument: str, work: Work) -> str | None:
    if work.source.library != HF or "flash" not in work.facts.abilities:
        return f"{work.source.text} ({work.facts.kind}) does not call FlashAttention's own kernels; sdpa does"
    if work.recipe["precision"] in ("fp32", "tf32"):
        return f"its kernels are for fp16 and bf16, not for precision={work.recipe['precision']}"
    return None


ATTENTION = Knob(
    "attention",
    "How attention is computed",
    "sdpa",
    (
        Technique("sdpa", "scaled_dot_product_attention where the model can: no matrix of scores is kept"),
        Technique(
            "eager",
            "with matrix products and a softmax: scores of all pairs of tokens exist",
            _eager,
            _refuses_eager,
            maths=Maths.ORDER,
            price="memory that grows with the square of the length; slower",
            intrusion=2,
        ),
        Technique(
            "flash",
            "the kernels of the flash-attn package",
            _flash,
            _refuses_flash,
            maths=Maths.ORDER,
            price="a library that must be compiled for the machine",
            intrusion=3,
            packages=("flash_attn",),
        ),
    ),
)
