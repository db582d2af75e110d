"""The line of the user's program that is running: the nearest one outside of torch and installed packages.

Asked for at every read of an assumed value, so it costs a microsecond and remembers what it found."""

from __future__ import annotations

import sys
from functools import cache
from types import FrameType
from typing import Final

from vramscope.recording import where

PRINTS: Final = "prints"
"""In the place of a line: torch reads values to print a tensor, which decides nothing."""

_BETWEEN = ("torch/utils/_device.py", "torch/overrides.py", "torch/_tensor.py", "torch/utils/_contextlib.py")


def here() -> str | None:
    """``train.py:41``; None on a thread that runs no Python of the program (autograd's own)."""
    fallback = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        kind = _kind(file)
        if kind == "program":
            return _name(file, frame.f_lineno)
        if kind == PRINTS:
            return PRINTS
        if kind == "package" and fallback is None:
            fallback = _name(file, frame.f_lineno)
        frame = frame.f_back
    return fallback


def asking() -> FrameType | None:
    """The frame that asked for a value: the nearest one that isn't ours, the program's or a library's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _hands_on(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


@cache
def _hands_on(file: str) -> bool:
    """Whether a file is ours, or torch's that stands between a call and its operator, as in ``with device:``."""
    return file.startswith(where.OURS) or file.endswith(_BETWEEN)


@cache
def _kind(file: str) -> str:
    if file.endswith("torch/_tensor_str.py"):
        return PRINTS
    if file.startswith(where.OURS) or "/torch/" in file:
        return "torch"
    return "package" if where.is_foreign(file) else "program"


@cache
def _name(file: str, line: int) -> str:
    return f"{where.shown(file)}:{line}"
