"""In which types the model is kept and computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.technique import AUTO, Knob, Maths, Technique

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def _tf32(argument: str, script: Script, work: Work) -> None:
    script.settings += [
        'torch.set_float32_matmul_precision("high")',
        "torch.backends.cudnn.allow_tf32 = True",
    ]


def _autocast(dtype: str, argument: str, script: Script, work: Work) -> None:
    script.contexts.append(f'torch.autocast("cuda", dtype={dtype})')


def _amp_fp16(argument: str, script: Script, work: Work) -> None:
    _autocast("torch.float16", argument, script, work)
    if work.trains:
        script.scaler = True
        script.optimizer.append('scaler = torch.amp.GradScaler("cuda")')


def _amp_bf16(argument: str, script: Script, work: Work) -> None:
    _autocast("torch.bfloat16", argument, script, work)


def _default_dtype(dtype: str, script: Script) -> None:
    script.settings.append(f"torch.set_default_dtype({dtype})  # of parameters and of random data")


def _bf16(argument: str, script: Script, work: Work) -> None:
    _default_dtype("torch.bfloat16", script)


def _fp16(argument: str, script: Script, work: Work) -> None:
    _default_dtype("torch.float16", script)


PRECISION = Knob(
    "precision",
    "In which types the model is kept and computes",
    AUTO,
    (
        Technique("fp32", "everything in fp32 (convolutions in TF32 where a card has it, as PyTorch does)"),
        Technique(
            "tf32",
            "fp32 with matrix products in TF32",
            _tf32,
            maths=Maths.ROUNDING,
            price="products have 10 bits of mantissa; faster",
            intrusion=1,
        ),
        Technique(
            "amp-bf16",
            "fp32 parameters, autocast to bf16",
            _amp_bf16,
            maths=Maths.ROUNDING,
            price="activations have 8 bits of mantissa; faster from Ampere on",
            intrusion=3,
        ),
        Technique(
            "amp-fp16",
            "fp32 parameters, autocast to fp16 with a GradScaler",
            _amp_fp16,
            maths=Maths.ROUNDING,
            price="activations have 11 bits of mantissa and a small range; faster",
            intrusion=3,
        ),
        Technique(
            "bf16",
            "parameters, gradients and optimizer states in bf16",
            _bf16,
            maths=Maths.ROUNDING,
            price="small updates are lost in rounding; faster",
            intrusion=6,
        ),
        Technique(
            "fp16",
            "parameters, gradients and optimizer states in fp16",
            _fp16,
            maths=Maths.ROUNDING,
            price="gradients underflow without a scaler: for inference",
            intrusion=8,
        ),
    ),
)
