"""What could be turned to need less memory: one change per position of a knob, and smaller micro-batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from vramscope.errors import RecipeError
from vramscope.jobs.knobs import KNOBS
from vramscope.jobs.technique import Knob, Maths, Technique
from vramscope.jobs.work import Work
from vramscope.planning.points import why_not

_LEFT_OUT = {"task", "targets", "compile", "offload"}
"""Another job; what only goes with adapters; what takes minutes, and what takes this machine's own memory."""
_NO_HELP = {
    ("optimizer", "adamw-8bit-torchao"),
    ("optimizer", "adam"),
    ("precision", "tf32"),
    ("attention", "eager"),
    ("cudnn-benchmark", "on"),
    ("zero-grad", "zero"),
    ("clip", "norm"),
    ("ema", "on"),
    ("tune", "dora"),
}
"""What is compiled for minutes where another does the same, and what cannot take less than what it stands for."""
_USUAL = {("tune", "freeze"): "0.5"}
"""An argument where a technique has no usual one."""
_SPLITS = (2, 4, 8, 16)
"""Micro-batches into which a batch is cut."""
_STATISTICS = 3
"""So much more intrusive is that where batch norm sees fewer samples."""
_MICRO = "micro-batch"


@dataclass(frozen=True, slots=True)
class Change:
    """Something that is done otherwise than was asked for."""

    knob: str
    """Of changes of one knob only one can be made."""
    turned: Mapping[str, str]
    maths: Maths
    intrusion: int
    price: str


def changes_for(work: Work) -> tuple[Change, ...]:
    """Every change that goes with the work as it was asked for, and whose libraries are installed."""
    found = [*_positions(work), *_micro_batches(work)]
    return tuple(change for change in found if with_changes(work, [change]) is not None)


def with_changes(work: Work, changes: Iterable[Change]) -> Work | None:
    """The work with changes made; None if they do not go with it or with each other."""
    turned = {name: position for change in changes for name, position in change.turned.items()}
    try:
        changed = replace(work, recipe=work.recipe.having(turned))
    except RecipeError:
        return None
    return None if why_not(changed) else changed


def _positions(work: Work) -> Iterator[Change]:
    """Every other position of every knob that has techniques."""
    for knob in KNOBS:
        if knob.name in _LEFT_OUT or knob.number is not None or (knob.training_only and not work.trains):
            continue
        for technique in knob.techniques:
            position = _position(knob, technique)
            if position is not None and position != work.recipe[knob.name]:
                yield _change(knob, technique, position, work)


def _position(knob: Knob, technique: Technique) -> str | None:
    if (knob.name, technique.name) in _NO_HELP:
        return None
    argument = technique.usual or _USUAL.get((knob.name, technique.name))
    if technique.argument is None:
        return technique.name
    return f"{technique.name}:{technique.argument(argument)}" if argument else None


def _change(knob: Knob, technique: Technique, position: str, work: Work) -> Change:
    """What is left behind counts too: from 8-bit states to whole ones is other maths than was asked for."""
    asked, _ = knob.technique(work.recipe[knob.name])
    maths = max(technique.maths, asked.maths) if asked else technique.maths
    price = technique.price or technique.summary
    return Change(
        knob.name,
        {knob.name: position},
        Maths(maths),
        max(technique.intrusion, 1),
        f"{knob.name} {position}: {price}",
    )


def _micro_batches(work: Work) -> Iterator[Change]:
    """The same batch in parts, their gradients added up."""
    if not work.trains:
        return
    batch, parts = work.recipe.number("batch"), work.recipe.number("accumulate")
    normalized = any("BatchNorm" in name for name in work.facts.layers)
    for split in _SPLITS:
        if batch % split:
            return
        price = f"{split} micro-batches of {batch // split} make a step: smaller kernels, somewhat slower"
        if normalized:
            price += f"; batch norm takes its statistics over {batch // split} samples instead of {batch}"
        yield Change(
            _MICRO,
            {"batch": str(batch // split), "accumulate": str(parts * split)},
            Maths.OTHER if normalized else Maths.ORDER,
            split.bit_length() + (_STATISTICS if normalized else 0),
            price,
        )
