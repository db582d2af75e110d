"""What a fit may search over: where it starts, between which ends, and in which steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vramscope.errors import RecipeError
from vramscope.jobs.facts import GENERATE
from vramscope.jobs.source import HF
from vramscope.jobs.tasks import task_module
from vramscope.jobs.work import Work

_NO_END = 1 << 20
_PATCHES = (32, 16, 14, 8)
"""Sides of what models cut images into, or scale them down by."""
_ADAPTERS = ("lora", "dora", "qlora")


class Limits(NamedTuple):
    """A search's ends, in the knob's own unit."""

    start: int
    least: int
    most: int
    multiple_of: int


def limits(knob: str, work: Work) -> Limits:
    """Where the search for a knob's largest value begins and ends; RecipeError if the work has no such knob."""
    found = _LIMITS.get(knob)
    if found is None:
        raise RecipeError(f"--fit {knob}: what can be searched for is {', '.join(_LIMITS)}")
    return found(work)


def _batch(work: Work) -> Limits:
    return Limits(8, 1, _NO_END, 1)


def _image(work: Work) -> Limits:
    """In steps of what the size that it was made for is a multiple of."""
    _check_shape(work, "image")
    side = work.facts.image or 224
    step = next((patch for patch in _PATCHES if side % patch == 0), 1)
    return Limits(side, step, 1 << 14, step)


def _seq(work: Work) -> Limits:
    """Up to the positions that the model has; those that are generated come on top of the prompt."""
    _check_shape(work, "seq")
    most = work.facts.positions or _NO_END
    if work.task == GENERATE:
        most = max(most - work.recipe.number("new-tokens"), 1)
    return Limits(min(128, most), 1, most, 1)


def _new_tokens(work: Work) -> Limits:
    _check_shape(work, "new-tokens")
    most = max((work.facts.positions or _NO_END) - work.recipe.number("seq"), 1)
    return Limits(min(16, most), 1, most, 1)


def _lora_rank(work: Work) -> Limits:
    tune = work.recipe["tune"].partition(":")[0]
    if not work.trains or tune not in _ADAPTERS:
        raise RecipeError(
            f"--fit lora-rank: tune={work.recipe['tune']} has no rank; add --tune {', '.join(_ADAPTERS)}"
        )
    return Limits(8, 1, 4096, 1)


def _layers(work: Work) -> Limits:
    if work.source.library != HF or "num_hidden_layers" not in _config_keys(work):
        raise RecipeError(
            f"--fit layers: {work.source.text} has no num_hidden_layers that could be turned; write"
            " hf/TYPE?num_hidden_layers=…"
        )
    return Limits(4, 1, 4096, 1)


def _config_keys(work: Work) -> set[str]:
    """What its config is known to have; every text model of transformers has that number."""
    written = {key for key, _ in work.source.settings}
    return written | ({"num_hidden_layers"} if work.facts.vocabulary is not None else set())


def _check_shape(work: Work, knob: str) -> None:
    if knob not in task_module(work.task).usual(work.facts):
        raise RecipeError(f"--fit {knob}: {work.task} with {work.source.text} has no {knob}")


_LIMITS: dict[str, Callable[[Work], Limits]] = {
    "batch": _batch,
    "image": _image,
    "seq": _seq,
    "new-tokens": _new_tokens,
    "lora-rank": _lora_rank,
    "layers": _layers,
}
KNOBS_TO_FIT = tuple(_LIMITS)
"""What `--fit` takes."""
