"""What is taken for a value that the card would have computed and that nobody knows.

The settings come as text, ``nonzero=0.5;float=2.0``, from `--assume` or from $VRAMSCOPE_ASSUME.
This module does not import torch: the command line checks the text with it before anything starts."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from vramscope.errors import UsageError

VARIABLE = "VRAMSCOPE_ASSUME"

# The fields below are named as the values they stand for, which hides the types of those names.
_Number = float
_Whole = int
_Truth = bool


@dataclass(frozen=True, slots=True)
class Policy:
    """The answers where nothing is known; docs/values.md describes each for users."""

    float: _Number = 1.0
    """what a floating point number reads as"""
    int: _Whole = 0
    """what an integer reads as"""
    bool: _Truth = True
    """what a truth value reads as"""
    finite: _Truth = True
    """nothing is NaN or infinite; GradScaler finds no overflow"""
    compare: _Number = 1.0
    """the part of a comparison of unknown numbers that is true"""
    nonzero: _Number = 1.0
    """the part of an unknown mask or tensor that nonzero, x[mask] and masked_select take"""
    unique: _Number = 1.0
    """the part of unknown elements that unique and unique_consecutive find distinct"""
    repeat: _Whole = 1
    """how often repeat_interleave repeats each row when the counts are unknown"""
    bins: _Whole = 0
    """how many bins bincount finds in unknown numbers; its minlength if that is more"""
    keep: _Number = 1.0
    """the part of the boxes that non-maximum suppression keeps"""
    routing: _Number = 1.0
    """how many times its fair share the busiest of few choices (experts) gets from topk; 1 is balanced"""


def parse(text: str) -> Policy:
    """The policy that a text like ``nonzero=0.5;bool=false`` sets; UsageError names what it can't read."""
    policy = Policy()
    for part in text.replace(",", ";").split(";"):
        if part.strip():
            key, _, value = part.partition("=")
            policy = _with(policy, key.strip(), value.strip())
    return policy


def from_environment() -> Policy:
    """The policy of this process."""
    return parse(os.environ.get(VARIABLE, ""))


def keys() -> tuple[str, ...]:
    """Every key that can be set, in the order of the documentation."""
    return tuple(field.name for field in fields(Policy))


def _with(policy: Policy, key: str, value: str) -> Policy:
    reader = _READERS.get(key)
    if reader is None:
        raise UsageError(f"nothing called {key!r} is assumed; what can be set: {', '.join(keys())}")
    change: dict[str, Any] = {key: reader(key, value)}
    return replace(policy, **change)


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{key}={text}: {key} takes a number, as in {key}=0.5") from None


def _fraction(key: str, text: str) -> float:
    value = _number(key, text)
    if not 0 <= value <= 1:
        raise UsageError(f"{key}={text}: {key} takes a part of the whole, from 0 to 1")
    return value


def _share(key: str, text: str) -> float:
    value = _number(key, text)
    if not 1 <= value < math.inf:
        raise UsageError(f"{key}={text}: {key} takes a factor of at least 1; 1 is balanced")
    return value


def _whole(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{key}={text}: {key} takes a whole number") from None


def _count(key: str, text: str) -> int:
    value = _whole(key, text)
    if value < 0:
        raise UsageError(f"{key}={text}: {key} can't be below zero")
    return value


def _truth(key: str, text: str) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in words:
        raise UsageError(f"{key}={text}: {key} takes true or false")
    return words[text.lower()]


_READERS: dict[str, Callable[[str, str], Any]] = {
    "float": _number,
    "int": _whole,
    "bool": _truth,
    "finite": _truth,
    "compare": _fraction,
    "nonzero": _fraction,
    "unique": _fraction,
    "repeat": _count,
    "bins": _count,
    "keep": _fraction,
    "routing": _share,
}
