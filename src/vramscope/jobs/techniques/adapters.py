"""LoRA and its relatives, by peft."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.facts import CAUSAL_LM
from vramscope.jobs.source import HF
from vramscope.jobs.technique import AUTO, whole_number
from vramscope.jobs.techniques.quantized import write_loading
from vramscope.jobs.techniques.refusing import against, without_layers
from vramscope.jobs.techniques.targets import ending

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

rank_of = whole_number("the rank of an adapter", most=1 << 16)
_FOUND = """\
targets = [
    name
    for name, module in model.named_modules()
    if isinstance(module, (nn.Linear, nn.Conv2d)) and getattr(module, "groups", 1) == 1
]"""


def _write(script: Script, work: Work, rank: str, extra: str = "") -> None:
    script.imports.add("from peft import LoraConfig, get_peft_model")
    targets = _targets(script, work)
    script.model.append(
        f"adapter = LoraConfig(r={rank}, lora_alpha={2 * int(rank)}, target_modules={targets}{extra})"
    )
    script.model.append("model = get_peft_model(model, adapter)")


def _targets(script: Script, work: Work) -> str:
    """The code of what is adapted; writes what finds it if it must be looked for."""
    pattern = work.recipe["targets"]
    if pattern != AUTO:
        return ending(pattern)
    if work.source.library == HF and work.facts.vocabulary is not None:
        return '"all-linear"'
    script.imports.add("from torch import nn")
    script.model.append(_FOUND)
    return "targets"


def write_lora(rank: str, script: Script, work: Work) -> None:
    """Writes peft's LoRA around the model."""
    _write(script, work, rank)


def write_dora(rank: str, script: Script, work: Work) -> None:
    """The same with DoRA's magnitudes."""
    _write(script, work, rank, ", use_dora=True")


def write_qlora(rank: str, script: Script, work: Work) -> None:
    """Loads the model in 4 bits and writes LoRA around it."""
    compute = "float16" if work.recipe["precision"] in ("fp16", "amp-fp16") else "bfloat16"
    script.imports.add("from transformers import BitsAndBytesConfig")
    script.imports.add("from peft import prepare_model_for_kbit_training")
    quantization = (
        "quantization = BitsAndBytesConfig(\n"
        '    load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,\n'
        f"    bnb_4bit_compute_dtype=torch.{compute},\n"
        ")"
    )
    write_loading(script, work, quantization, f"torch.{compute}")
    script.model.append("model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)")
    _write(script, work, rank)


def refuses_adapters(argument: str, work: Work) -> str | None:
    """Without layers that can have adapters there is nothing to adapt."""
    return without_layers(work, "Linear", "Conv1D", "Conv2d")


def refuses_qlora(argument: str, work: Work) -> str | None:
    """It is for the causal language models of transformers."""
    if work.source.library != HF or work.task != CAUSAL_LM:
        return (
            f"it is for causal-lm with models of transformers, not for {work.task} with {work.source.library}"
        )
    return against(
        work, "4-bit weights are computed with in bf16 or fp16", precision="fp32|tf32"
    ) or without_layers(work, "Linear", "Conv1D")
