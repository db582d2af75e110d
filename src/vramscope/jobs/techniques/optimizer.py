"""What steps the parameters, and which of its implementations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vramscope.jobs.facts import CAUSAL_LM, MASKED_LM, SEQ2SEQ
from vramscope.jobs.technique import Knob, Maths, Technique
from vramscope.jobs.techniques.refusing import against, without_layers

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

USUAL = "adamw"
_OWN = "own_optimizer"
"""The ability of a `vramscope.Job` that brings an optimizer."""


@dataclass(frozen=True, slots=True)
class _Class:
    """An optimizer's class as programs name it."""

    code: str
    arguments: str
    imports: str = ""
    implementations: tuple[str, ...] = ()
    """Those of `OPTIMIZER_IMPL` that it has beside its own choice."""


_ALL = ("foreach", "fused", "for-loop")
_BNB = "import bitsandbytes as bnb"
_CLASSES = {
    "sgd": _Class("torch.optim.SGD", "lr=0.1", implementations=_ALL),
    "momentum": _Class("torch.optim.SGD", "lr=0.1, momentum=0.9", implementations=_ALL),
    "adam": _Class("torch.optim.Adam", "lr=1e-4", implementations=_ALL),
    "adamw": _Class("torch.optim.AdamW", "lr=1e-4", implementations=_ALL),
    "adamw-8bit": _Class("bnb.optim.AdamW8bit", "lr=1e-4", _BNB),
    "adamw-paged": _Class("bnb.optim.PagedAdamW32bit", "lr=1e-4", _BNB),
    "adamw-8bit-paged": _Class("bnb.optim.PagedAdamW8bit", "lr=1e-4", _BNB),
    "adamw-8bit-torchao": _Class("AdamW8bit", "lr=1e-4", "from torchao.optim import AdamW8bit"),
    "adafactor": _Class("torch.optim.Adafactor", "lr=1e-2", implementations=("foreach", "for-loop")),
    "lion": _Class("bnb.optim.Lion", "lr=1e-5", _BNB),
    "muon": _Class("torch.optim.Muon", "lr=2e-2"),
}
_SWITCHES = {"foreach": "foreach=True", "fused": "fused=True", "for-loop": "foreach=False"}


def constructor(work: Work, parameters: str) -> str:
    """The code that makes the recipe's optimizer for some parameters."""
    chosen = _CLASSES[work.recipe["optimizer"]]
    switch = _SWITCHES.get(work.recipe["optimizer-impl"])
    return f"{chosen.code}({', '.join((parameters, chosen.arguments, *([switch] if switch else [])))})"


def brings_its_own(work: Work) -> bool:
    """The user's own workload makes its optimizer, and nobody asked for another."""
    return _OWN in work.facts.abilities and work.recipe["optimizer"] == USUAL


def _write(argument: str, script: Script, work: Work) -> None:
    if work.recipe["optimizer-in-backward"] == "on":
        return  # which makes one for each parameter
    if script.own_optimizer and brings_its_own(work):
        script.optimizer.append(script.own_optimizer)
        return
    import_optimizer(script, work)
    script.optimizer.append(f"optimizer = {constructor(work, 'trained')}")


def import_optimizer(script: Script, work: Work) -> None:
    """Writes what the recipe's optimizer is imported with."""
    if imports := _CLASSES[work.recipe["optimizer"]].imports:
        script.imports.add(imports)


_ENDS = "ends = {model.get_input_embeddings().weight, model.get_output_embeddings().weight}"


def _muon(argument: str, script: Script, work: Work) -> None:
    """Muon is for the matrices inside; embeddings, heads and vectors are AdamW's."""
    has_ends = work.facts.tasks[0] in (CAUSAL_LM, MASKED_LM, SEQ2SEQ)
    script.optimizer += [
        *([_ENDS] if has_ends else []),
        f"hidden = [each for each in trained if each.ndim == 2{' and each not in ends' if has_ends else ''}]",
        f"others = [each for each in trained if each.ndim != 2{' or each in ends' if has_ends else ''}]",
        "muon = torch.optim.Muon(hidden, lr=2e-2)",
        "optimizer = torch.optim.AdamW(others, lr=1e-4)",
    ]
    script.optimizers = ["muon", "optimizer"]


def _refuses_muon(argument: str, work: Work) -> str | None:
    return (
        without_layers(work, "Linear", "Conv1D")
        or against(work, "it is made for whole matrices, not for narrow ones", tune="lora|dora|qlora")
        or against(work, "it takes two optimizers", optimizer_in_backward="on")
    )


_COARSE = "states are rounded to 8 bits in blocks; about as fast"
OPTIMIZER = Knob(
    "optimizer",
    "What steps the parameters",
    USUAL,
    (
        Technique("adamw", "AdamW: two states per parameter (torch.optim)", _write),
        Technique("adam", "Adam: two states per parameter (torch.optim)", _write, intrusion=1),
        Technique(
            "momentum",
            "SGD with momentum: one state per parameter",
            _write,
            maths=Maths.OTHER,
            price="other learning rates; seldom good for transformers",
            intrusion=7,
        ),
        Technique(
            "sgd",
            "plain SGD: no states",
            _write,
            maths=Maths.OTHER,
            price="other learning rates and more steps; seldom good for transformers",
            intrusion=8,
        ),
        Technique(
            "adamw-8bit",
            "AdamW with 8-bit states (bitsandbytes)",
            _write,
            maths=Maths.ROUNDING,
            price=_COARSE,
            intrusion=3,
            packages=("bitsandbytes",),
        ),
        Technique(
            "adamw-paged",
            "AdamW with states that can leave the card (bitsandbytes PagedAdamW32bit)",
            _write,
            price="states move over the bus where the card is full: slow steps then",
            intrusion=3,
            packages=("bitsandbytes",),
        ),
        Technique(
            "adamw-8bit-paged",
            "AdamW with 8-bit states that can leave the card (bitsandbytes)",
            _write,
            maths=Maths.ROUNDING,
            price=f"{_COARSE}; they move over the bus where the card is full",
            intrusion=4,
            packages=("bitsandbytes",),
        ),
        Technique(
            "adamw-8bit-torchao",
            "AdamW with 8-bit states (torchao)",
            _write,
            maths=Maths.ROUNDING,
            price="states are rounded to 8 bits in blocks; the step is compiled once",
            intrusion=3,
            packages=("torchao",),
        ),
        Technique(
            "adafactor",
            "Adafactor: a row and a column of states per matrix (torch.optim)",
            _write,
            maths=Maths.OTHER,
            price="the second moment is approximated, there is no first",
            intrusion=5,
        ),
        Technique(
            "lion",
            "Lion: one state per parameter (bitsandbytes)",
            _write,
            maths=Maths.OTHER,
            price="updates are signs: smaller learning rates",
            intrusion=5,
            packages=("bitsandbytes",),
        ),
        Technique(
            "muon",
            "Muon for matrices, AdamW for the rest: one state per matrix element (torch.optim)",
            _muon,
            _refuses_muon,
            maths=Maths.OTHER,
            price="products of matrices in every step; other learning rates",
            intrusion=6,
        ),
    ),
    training_only=True,
)


def _refuses_implementation(name: str, work: Work) -> str | None:
    optimizer = work.recipe["optimizer"]
    if brings_its_own(work):
        return "the Job makes its optimizer itself"
    if name not in _CLASSES[optimizer].implementations:
        return f"optimizer={optimizer} has no such implementation to choose"
    return None


def _implementation(name: str, summary: str, price: str, intrusion: int) -> Technique:
    return Technique(
        name,
        summary,
        refuses=lambda argument, work: _refuses_implementation(name, work),
        maths=Maths.ORDER,
        price=price,
        intrusion=intrusion,
    )


OPTIMIZER_IMPL = Knob(
    "optimizer-impl",
    "How torch.optim's optimizers step",
    "auto",
    (
        Technique("auto", "PyTorch's choice: foreach on a card"),
        _implementation("foreach", "all parameters at once, with lists of temporaries", "temporaries", 1),
        _implementation("fused", "one kernel that needs no temporaries", "nothing; the fastest", 1),
        _implementation("for-loop", "one parameter after the other", "many small kernels: slow steps", 2),
    ),
    training_only=True,
)
