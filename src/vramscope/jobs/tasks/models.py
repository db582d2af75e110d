"""How a program makes the model of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vramscope.jobs.facts import CAUSAL_LM, CLASSIFICATION, INFERENCE, MASKED_LM, SEQ2SEQ
from vramscope.jobs.source import DIFFUSERS, FUNCTION, HF, TIMM, TORCHVISION
from vramscope.jobs.technique import AUTO

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

AUTO_CLASSES = {
    SEQ2SEQ: "AutoModelForSeq2SeqLM",
    MASKED_LM: "AutoModelForMaskedLM",
    CAUSAL_LM: "AutoModelForCausalLM",
    CLASSIFICATION: "AutoModelForImageClassification",
    INFERENCE: "AutoModel",
}
"""Of transformers, by what a model is for."""
_WIDTH = 88
"""Of a line, beside its indentation and what is assigned to."""


def write_model(script: Script, work: Work) -> None:
    """Writes the lines that make ``model`` on ``device`` with random weights."""
    _WRITERS[work.source.library](script, work)


def dtype_of(work: Work) -> str:
    """The code of the type that the parameters have, where a library must be told."""
    return {"bf16": "torch.bfloat16", "fp16": "torch.float16"}.get(work.recipe["precision"], "torch.float32")


def auto_class(work: Work) -> str:
    """The class of transformers that makes the model: of what it is for, whatever is done with it."""
    return AUTO_CLASSES[work.facts.tasks[0]]


def transformers_import(work: Work) -> str:
    """The line that imports what makes a model of transformers."""
    return f"from transformers import AutoConfig, {auto_class(work)}"


def call(function: str, *arguments: str, **values: Any) -> str:
    """The code of a call; one argument a line where it would be long."""
    words = [*arguments, *(f"{key}={_code(value)}" for key, value in values.items())]
    line = f"{function}({', '.join(words)})"
    if len(line) <= _WIDTH:
        return line
    return f"{function}(\n" + "".join(f"    {word},\n" for word in words) + ")"


class Name(str):
    """A value that is a name of the program, not a text."""

    __slots__ = ()


def _code(value: Any) -> str:
    text = str(value) if isinstance(value, Name) else repr(value)
    return text if '"' in text else text.replace("'", '"')


def _resized(work: Work) -> str | None:
    """The argument that fits the model to the images, if it must be told their size and it is not its own."""
    argument: str | None = work.facts.settings.get("image_argument")
    image = work.facts.image
    return argument if image is not None and work.recipe["image"] not in (AUTO, str(image)) else None


def _timm(script: Script, work: Work) -> None:
    values = {**work.source.values, **_size(work)}
    script.imports.add("import timm")
    script.build.append("model = " + call("timm.create_model", f'"{work.source.name}"', **values))


def _torchvision(script: Script, work: Work) -> None:
    values = {**work.facts.settings.get("arguments", {}), **work.source.values, **_size(work)}
    script.imports.add("import torchvision")
    script.build.append("model = " + call("torchvision.models.get_model", f'"{work.source.name}"', **values))


def _size(work: Work) -> dict[str, Name]:
    argument = _resized(work)
    return {argument: Name("IMAGE")} if argument else {}


def _hf(script: Script, work: Work) -> None:
    make = "for_model" if work.facts.settings.get("by_type") else "from_pretrained"
    config = call(f"AutoConfig.{make}", f'"{_place(work)}"', **work.source.values)
    script.imports.add(transformers_import(work))
    script.settings.append(f"config = {config}")
    if argument := _resized(work):
        script.settings.append(f"config.{argument} = IMAGE")
    if "decoder_start" in work.facts.settings:
        script.settings.append(f"config.decoder_start_token_id = {work.facts.settings['decoder_start']}")
    script.build.append(f"model = {auto_class(work)}.from_config(config, dtype={dtype_of(work)})")


def _diffusers(script: Script, work: Work) -> None:
    name, values = work.facts.settings["class"], work.source.values
    script.imports.add(f"from diffusers import {name}")
    if work.facts.settings.get("typed"):
        script.build.append("model = " + call(name, **values))
        return
    subfolder = work.facts.settings.get("subfolder")
    within = {"subfolder": subfolder} if subfolder else {}
    script.settings.append("config = " + call(f"{name}.load_config", f'"{_place(work)}"', **within))
    script.build.append("model = " + call(f"{name}.from_config", "config", **values))


def _place(work: Work) -> str:
    """A repository's or type's name, or a folder that is found from anywhere."""
    folder = work.source.folder
    return (
        work.source.name if folder is None or work.facts.settings.get("by_type") else str(folder.absolute())
    )


def _function(script: Script, work: Work) -> None:
    module, _, name = work.source.name.partition(":")
    script.imports.add(f"from {module} import {name}")
    script.settings.append(f"job = {name}()")
    script.build.append("model = job.model()")


_WRITERS = {
    TIMM: _timm,
    TORCHVISION: _torchvision,
    HF: _hf,
    DIFFUSERS: _diffusers,
    FUNCTION: _function,
}
