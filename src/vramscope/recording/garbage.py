"""Keeps the recorder's own objects from starting Python's collection of garbage.

A collection frees what the program has left in cycles, tensors among it; if ours set it off, the program
would hold less memory than it does alone."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Found = TypeVar("Found")


def uncollected(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """The function, during which nothing is collected; what it makes and drops again does not count after it."""

    @functools.wraps(function)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> Found:
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return run
