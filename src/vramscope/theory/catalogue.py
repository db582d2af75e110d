"""The formulas that are asked for by name and figures: ``linear:inputs=4096,outputs=11008,rows=2048``."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from vramscope.errors import UsageError
from vramscope.theory import adapters, blocks, layers
from vramscope.theory.formula import WIDTHS, Formula

BY_NAME: Mapping[str, Callable[..., Formula]] = {
    "linear": layers.linear,
    "conv2d": layers.conv2d,
    "batch-norm": layers.batch_norm,
    "layer-norm": layers.layer_norm,
    "rms-norm": layers.rms_norm,
    "embedding": layers.embedding,
    "attention": layers.attention,
    "cross-entropy": layers.cross_entropy,
    "activation": layers.activation,
    "dropout": layers.dropout,
    "max-pool": layers.max_pool,
    "transformer": blocks.activations,
    "kv-cache": blocks.kv_cache,
    "lora": adapters.lora,
    "qlora": adapters.qlora,
}
MAY_BE_ZERO = frozenset({"bias", "flash", "padding", "keys", "kv_heads", "window"})


def figures_of(name: str) -> dict[str, int | None]:
    """The figures that a formula takes, with what they are if nobody says; None: they must be given."""
    found = inspect.signature(BY_NAME[name]).parameters.values()
    return {each.name: None if each.default is each.empty else each.default for each in found}


def formula_of(text: str) -> Formula:
    """The formula that a text names, worked out; UsageError for names and figures that do not go."""
    name, _, tail = text.strip().partition(":")
    if name not in BY_NAME:
        near = difflib.get_close_matches(name, BY_NAME, 3, 0.4)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(BY_NAME)}"
        raise UsageError(f"no formula is called {name!r}: {hint}")
    given = _given(name, tail)
    try:
        found = BY_NAME[name](**given)
    except ZeroDivisionError as error:
        raise UsageError(f"{text}: a figure is 0 that something is divided by") from error
    return replace(found, given={key: given.get(key, usual) for key, usual in figures_of(name).items()})


def _given(name: str, tail: str) -> dict[str, int]:
    known, given = figures_of(name), {}
    for pair in filter(None, tail.split(",")):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if key not in known or not equals:
            raise UsageError(f"{name}: {pair!r} is none of its figures: {_usage(name)}")
        given[key] = _number(name, key, value)
    if missing := [key for key, value in known.items() if value is None and key not in given]:
        raise UsageError(f"{name}: {', '.join(missing)} must be given: {_usage(name)}")
    return given


def _number(name: str, key: str, text: str) -> int:
    if key == "bytes" and text in WIDTHS:
        return WIDTHS[text]
    number = whole(text)
    if number is None or number < (0 if key in MAY_BE_ZERO else 1):
        raise UsageError(f"{name}: {key}={text} is no number that it can have")
    return number


def whole(text: str) -> int | None:
    """A whole number as ``11e9``, ``6.7B``, ``124,439,808`` or ``512``; None for a text that is none."""
    match = re.fullmatch(r"\s*([0-9][0-9,_]*(?:\.[0-9]+)?(?:[eE][0-9]{1,2})?)\s*([kKMBT]?)\s*", text)
    if match is None:
        return None
    factor = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}[match[2]]
    number = float(match[1].replace(",", "").replace("_", "")) * factor
    return round(number)


def _usage(name: str) -> str:
    """``linear:inputs=…,outputs=…[,bias=1]``."""
    parts = [f"{key}=…" if value is None else f"{key}={value}" for key, value in figures_of(name).items()]
    return f"{name}:{','.join(parts)}"


def usage_of(name: str) -> str:
    """How it is asked for, with what its figures are if nobody says."""
    return _usage(name)
