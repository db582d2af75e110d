"""The program of the staged measurement: the article's, for any model, in plain PyTorch."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from textwrap import indent

from vramscope.errors import RecipeError
from vramscope.jobs.facts import CAUSAL_LM, CLASSIFICATION, DETECTION, MASKED_LM, SEQ2SEQ
from vramscope.jobs.script import Script
from vramscope.jobs.source import DIFFUSERS, FUNCTION, HF
from vramscope.jobs.tasks.models import write_model
from vramscope.jobs.tasks.texts import check_length, is_large
from vramscope.jobs.work import Work
from vramscope.jobs.wrapping import wrapped, wrapped_title
from vramscope.lab.stages.value import (
    BACKWARD,
    COUNT,
    FORWARD,
    IMPORT,
    INPUT,
    LOSS,
    MODEL,
    NO_GRAD,
    OPTIMIZER,
    SECOND,
    STEP,
    ZERO_GRAD,
)

FVCORE, TORCH = "fvcore", "torch.utils.flop_counter"
_READ = """\
def read(stage):
    \"\"\"Tells what is reserved, names the stage, and gives the cache back.\"\"\"
    print(json.dumps({"stage": stage, "reserved_bytes": torch.cuda.memory_reserved()}), flush=True)
    mark(stage)
    torch.cuda.empty_cache()"""
_BY_FVCORE = """\
def count():
    \"\"\"The size of the forward, by fvcore: multiply-adds, and what convolutions and products put out.\"\"\"
    flops, activations = FlopCountAnalysis(model, images), ActivationCountAnalysis(model, images)
    flops.unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    activations.unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    told = {"flops": flops.total(), "activations": activations.total()}
    print(json.dumps({"counted": "fvcore", **told}), flush=True)"""
_BY_TORCH = """\
def count():
    \"\"\"The size of the forward, by torch: multiplications and additions.\"\"\"
    with FlopCounterMode(display=False) as counter:
        {call}
    told = {{"flops": counter.get_total_flops(), "activations": None}}
    print(json.dumps({{"counted": "torch.utils.flop_counter", **told}}), flush=True)"""
_OF_DETECTOR = """\
def count():
    \"\"\"The size of the forward that finds boxes, by torch: multiplications and additions.\"\"\"
    model.eval()
    with FlopCounterMode(display=False) as counter:
        model(images)
    model.train()
    told = {"flops": counter.get_total_flops(), "activations": None}
    print(json.dumps({"counted": "torch.utils.flop_counter", **told}), flush=True)"""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What differs between tasks."""

    inputs: tuple[str, ...]
    """Lines that make what the model takes, on the card."""
    call: str
    """The code of the forward."""
    loss: tuple[str, ...]
    """Lines that make ``loss`` of ``out``, the targets included."""
    functions: tuple[str, ...] = ()
    """Definitions that they need."""


def write_stages(work: Work) -> str:
    """The program's text.  RecipeError for a model whose loss is not known or not apart from its forward."""
    script = Script(_title(work))
    write_model(script, work)
    script.imports |= {"import json", "from vramscope import mark"}
    parts = parts_of(work)(script, work)
    count = _count(script, work, parts)
    if any("nn." in line for line in parts.loss):
        script.imports.add("from torch import nn")
    lines = [*script.model, *_stages(parts)]
    blocks = (
        wrapped_title(script.title),
        "\n".join(script.import_lines()),
        "\n".join((*_constants(script), *script.settings)),
        "\n" + "\n\n\n".join((_READ, _build(script, work), count, *parts.functions)) + "\n",
        "\n".join(lines),
    )
    text = wrapped("\n\n".join(blocks) + "\n")
    ast.parse(text)
    return text


def counter_of(work: Work) -> str:
    """What counts the forward: fvcore where it is installed and the model takes a tensor, else torch."""
    traced = work.task == CLASSIFICATION and work.source.library != HF
    return FVCORE if traced and find_spec("fvcore") is not None else TORCH


def parts_of(work: Work) -> Callable[[Script, Work], _Parts]:
    """What writes a task's inputs, forward and loss; RecipeError where there is none."""
    if work.source.library in (FUNCTION, DIFFUSERS) or work.task not in _PARTS:
        raise RecipeError(
            f"{work.source.text}: the stages need a forward and a loss that are apart, as classifiers, detectors and "
            f"language models of timm, torchvision and transformers have them; this one is for {work.task}"
        )
    return _PARTS[work.task]


def _title(work: Work) -> str:
    shapes = ", ".join(
        f"{name} {work.recipe[name]}" for name in ("batch", "image", "seq") if work.recipe[name] != "auto"
    )
    return (
        f"{work.source.text} · {shapes}: one Adam step, a stage at a time. Written by `vramscope lab stages`."
    )


def _constants(script: Script) -> list[str]:
    names, values = ", ".join(script.constants), ", ".join(script.constants.values())
    return [f"{names} = {values}", 'device = torch.device("cuda")']


def _build(script: Script, work: Work) -> str:
    """Made on the CPU and moved, as in the article; a large model is made where it belongs."""
    lines = "\n".join(script.build)
    if is_large(work.facts):
        body = f"with device:\n{indent(lines, '    ')}\nreturn model"
    else:
        body = f"{lines}\nreturn model.to(device)"
    return 'def build():\n    """The model, on the card."""\n' + indent(body, "    ")


def _count(script: Script, work: Work, parts: _Parts) -> str:
    if counter_of(work) == FVCORE:
        script.imports.add("from fvcore.nn import ActivationCountAnalysis, FlopCountAnalysis")
        return _BY_FVCORE
    script.imports.add("from torch.utils.flop_counter import FlopCounterMode")
    return _OF_DETECTOR if work.task == DETECTION else _BY_TORCH.format(call=parts.call)


def _stages(parts: _Parts) -> list[str]:
    stages: list[tuple[str, tuple[str, ...]]] = [
        (IMPORT, ()),
        (INPUT, parts.inputs),
        (MODEL, ("model = build()",)),
        (SECOND, ("second = build()",)),
        (
            OPTIMIZER,
            ("del second", "torch.cuda.empty_cache()", "optimizer = torch.optim.Adam(model.parameters())"),
        ),
        (COUNT, ("count()",)),
        (NO_GRAD, ("with torch.no_grad():", f"    {parts.call}")),
        (FORWARD, (f"out = {parts.call}",)),
        (LOSS, parts.loss),
        (BACKWARD, ("loss.backward()",)),
        (STEP, ("optimizer.step()",)),
        (ZERO_GRAD, ("optimizer.zero_grad()",)),
    ]
    return [line for name, lines in stages for line in (*lines, f'read("{name}")')]


def _classification(script: Script, work: Work) -> _Parts:
    """The article's: random targets as probabilities of the classes."""
    script.constants.update(BATCH=work.recipe["batch"], IMAGE=work.recipe["image"])
    logits = "out.logits" if work.source.library == HF else "out"
    return _Parts(
        (f"images = torch.randn(BATCH, {work.facts.channels}, IMAGE, IMAGE).to(device)",),
        "model(images)",
        (
            f"targets = torch.randn(BATCH, {work.facts.classes}).to(device)",
            f"loss = nn.CrossEntropyLoss()({logits}, targets)",
        ),
    )


def _detection(script: Script, work: Work) -> _Parts:
    """A detector puts its losses out itself; the loss is their sum."""
    from vramscope.jobs.tasks import task_module

    inner = Script("")
    task_module(DETECTION).write(inner, work)
    script.constants.update(inner.constants)
    make = tuple(line for line in inner.batch if not line.startswith("return"))
    return _Parts(make, "model(images, targets)", ("loss = sum(out.values())",), tuple(inner.functions))


def _tokens(script: Script, work: Work, name: str = "tokens") -> str:
    check_length(work, work.recipe.number("seq"))
    script.constants.update(BATCH=work.recipe["batch"], SEQ=work.recipe["seq"])
    return f"{name} = torch.randint({work.facts.vocabulary}, (BATCH, SEQ)).to(device)"


def _loss_of(labels: str) -> str:
    """As transformers has it: the logits are not copied, but for models in half precision."""
    return f"loss = nn.functional.cross_entropy(out.logits.float().flatten(0, 1), {labels}.flatten())"


def _causal_lm(script: Script, work: Work) -> _Parts:
    labels = "labels = nn.functional.pad(tokens, (0, 1), value=-100)[:, 1:]  # the next token"
    return _Parts(
        (_tokens(script, work),),
        "model(input_ids=tokens, use_cache=False)",
        (labels, _loss_of("labels")),
    )


def _masked_lm(script: Script, work: Work) -> _Parts:
    labels = "labels = tokens.masked_fill(torch.rand(BATCH, SEQ, device=device) > 0.15, -100)"
    return _Parts((_tokens(script, work),), "model(input_ids=tokens)", (labels, _loss_of("labels")))


def _seq2seq(script: Script, work: Work) -> _Parts:
    labels = f"labels = torch.randint({work.facts.vocabulary}, (BATCH, SEQ)).to(device)"
    return _Parts(
        (_tokens(script, work),),
        "model(input_ids=tokens, decoder_input_ids=tokens, use_cache=False)",
        (labels, _loss_of("labels")),
    )


_PARTS: dict[str, Callable[[Script, Work], _Parts]] = {
    CLASSIFICATION: _classification,
    DETECTION: _detection,
    CAUSAL_LM: _causal_lm,
    MASKED_LM: _masked_lm,
    SEQ2SEQ: _seq2seq,
}
