"""Loops of libraries that draw again until every value is accepted come to their end.

``while True: mask = out_of_bounds(x); if not mask.any(): break; ...`` asks the card for a truth value that nobody
knows; the usual answer would keep it going for ever.  Such a loop draws once more and leaves.  In torch's
truncated normal distribution the bounds are known, so how often it draws follows from them.  A program's own
loop is not ended: it is named, and `--assume` decides (values/waiting.py)."""

from __future__ import annotations

import ast
import functools
import linecache
import math
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import FrameType, ModuleType
from typing import Any

from vramscope.recording.where import is_foreign

_REDRAWS = 1
"""How often a loop draws again of which nothing is known."""


class _Thread(threading.local):
    redraws = _REDRAWS
    asked: tuple[int, int] = (0, 0)
    """The frame that asked last, and how often in a row."""


_here = _Thread()


def install(torch: ModuleType) -> None:
    """Notes how often torch's truncated normal distribution draws."""
    init = torch.nn.init
    original = getattr(init, "_no_grad_trunc_normal_", None)
    if original is not None:
        init._no_grad_trunc_normal_ = _counted(original)


def _counted(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def draw(tensor: Any, mean: float, std: float, a: float, b: float, *args: Any, **kwargs: Any) -> Any:
        before = _here.redraws
        _here.redraws = redraws(tensor.numel(), mean, std, a, b) if tensor.is_cuda else before
        try:
            return original(tensor, mean, std, a, b, *args, **kwargs)
        finally:
            _here.redraws = before

    return draw


def redraws(elements: int, mean: float, std: float, a: float, b: float) -> int:
    """How often some of so many draws from a normal distribution lie beyond a and b and are drawn again.

    After k draws elements × outside^k are left, where `outside` is the distribution's weight beyond the bounds."""
    inside = _weight_below((b - mean) / std) - _weight_below((a - mean) / std)
    outside = 1 - inside
    if elements < 1 or outside * elements < 0.5:
        return 0
    return max(1, math.ceil(math.log(elements / 0.5) / -math.log(outside)) - 1) if outside < 1 else _REDRAWS


def _weight_below(deviations: float) -> float:
    return (1 + math.erf(deviations / math.sqrt(2))) / 2


def leaving(frame: FrameType | None) -> bool | None:
    """The truth value that ends the loop which `frame` asks for, once it has drawn often enough; None: no such loop."""
    if frame is None or not is_foreign(frame.f_code.co_filename):
        return None
    ends = _ends_at(frame.f_code.co_filename, frame.f_lineno)
    if ends is None:
        return None
    last, count = _here.asked
    count = count + 1 if last == id(frame) else 1
    _here.asked = (0, 0) if count > _here.redraws else (id(frame), count)
    return ends if count > _here.redraws else not ends


@lru_cache(maxsize=4096)
def _ends_at(filename: str, line: int) -> bool | None:
    """The truth value with which the loop is left that is asked for at a line."""
    for test, leaves_when in _exits(filename):
        if test.lineno <= line <= (test.end_lineno or test.lineno):
            return _wanted(test, leaves_when)
    return None


@lru_cache(maxsize=256)
def _exits(filename: str) -> tuple[tuple[ast.expr, bool], ...]:
    """Every condition that a loop without another end depends on, and with what result it is left."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.While)]
    return tuple(found for loop in loops for found in _of_loop(loop))


def _of_loop(loop: ast.While) -> Iterator[tuple[ast.expr, bool]]:
    if not isinstance(loop.test, ast.Constant):
        yield loop.test, False
        return
    for statement in loop.body:
        if isinstance(statement, ast.If) and any(isinstance(each, ast.Break) for each in statement.body):
            yield statement.test, True


def _wanted(test: ast.expr, result: bool) -> bool | None:
    """What the value within `test` must be for `test` to come out as `result`; None where that is not plain."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _wanted(test.operand, not result)
    return result if isinstance(test, ast.Call) else None
