"""Which parameters are trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.technique import Knob, Maths, Technique
from vramscope.jobs.techniques.adapters import (
    rank_of,
    refuses_adapters,
    refuses_qlora,
    write_dora,
    write_lora,
    write_qlora,
)
from vramscope.jobs.techniques.freezing import freeze_of, write_freeze

if TYPE_CHECKING:
    from vramscope.jobs.work import Work

_ADAPTERS = "only small matrices beside the layers learn; more operations in the forward"


def adapted(work: Work) -> bool:
    """peft's module is around the model."""
    return work.recipe["tune"].startswith(("lora:", "dora:", "qlora:"))


TUNE = Knob(
    "tune",
    "Which parameters are trained",
    "full",
    (
        Technique("full", "all parameters"),
        Technique(
            "freeze",
            "a part of the modules from the first on is frozen, freeze:0.9, or what a pattern names,"
            " freeze:layer1.*",
            write_freeze,
            argument=freeze_of,
            maths=Maths.OTHER,
            price="what is frozen learns nothing",
            intrusion=6,
        ),
        Technique(
            "lora",
            "adapters of a rank beside linear and convolution layers, lora:8 (peft)",
            write_lora,
            refuses_adapters,
            argument=rank_of,
            usual="8",
            maths=Maths.OTHER,
            price=_ADAPTERS,
            intrusion=6,
            packages=("peft",),
        ),
        Technique(
            "dora",
            "LoRA with trained magnitudes, dora:8 (peft)",
            write_dora,
            refuses_adapters,
            argument=rank_of,
            usual="8",
            maths=Maths.OTHER,
            price=f"{_ADAPTERS}, and the weights' norms in every forward",
            intrusion=7,
            packages=("peft",),
        ),
        Technique(
            "qlora",
            "LoRA on weights in 4 bits (NF4, double quantization), qlora:16 (bitsandbytes, peft)",
            write_qlora,
            refuses_qlora,
            argument=rank_of,
            usual="16",
            maths=Maths.OTHER,
            price=f"{_ADAPTERS}; weights are rounded to 4 bits and unpacked at every use: slower",
            intrusion=8,
            packages=("peft", "bitsandbytes", "accelerate"),
        ),
    ),
    training_only=True,
)
