"""In how many bits the weights are kept for inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.source import HF
from vramscope.jobs.technique import Knob, Maths, Technique
from vramscope.jobs.techniques.quantized import write_loading
from vramscope.jobs.techniques.refusing import against, without_layers

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

_CONFIGS = {
    "int8": ("Int8WeightOnlyConfig", "Int8WeightOnlyConfig()"),
    "int4": (
        "Int4WeightOnlyConfig",
        'Int4WeightOnlyConfig(group_size=128, int4_packing_format="tile_packed_to_4d")',
    ),
}


def _write(bits: str, script: Script, work: Work) -> None:
    name, code = _CONFIGS[bits]
    if work.source.library == HF:
        script.imports.add("from transformers import TorchAoConfig")
        script.imports.add(f"from torchao.quantization import {name}")
        write_loading(script, work, f"quantization = TorchAoConfig({code})", "torch.bfloat16")
        return
    script.imports.add(f"from torchao.quantization import {name}, quantize_")
    script.model.append(f"quantize_(model, {code})")


def _refuses(bits: str, work: Work) -> str | None:
    if work.trains:
        return f"they cannot be trained, and task={work.task} trains; tune=qlora is for that"
    if bits == "int4" and work.recipe["precision"] != "bf16":
        return f"its kernels compute in bf16 (precision=bf16), not in {work.recipe['precision']}"
    return without_layers(work, "Linear") or against(work, "it is not tried", compile="on")


def _technique(bits: str, summary: str, price: str, intrusion: int) -> Technique:
    return Technique(
        bits,
        summary,
        lambda argument, script, work: _write(bits, script, work),
        lambda argument, work: _refuses(bits, work),
        maths=Maths.ROUNDING,
        price=price,
        intrusion=intrusion,
        packages=("torchao",),
    )


WEIGHTS = Knob(
    "weights",
    "In how many bits the weights of linear layers are kept for inference",
    "full",
    (
        Technique("full", "in the type that `precision` says"),
        _technique("int8", "in 8 bits with a scale per row (torchao)", "weights are rounded to 8 bits", 4),
        _technique(
            "int4", "in 4 bits with a scale per 128 (torchao)", "weights are rounded to 4 bits: some harm", 6
        ),
    ),
)
