"""A program's own checks of values are taken as passed.

``if (boxes < 0).any(): raise ValueError(...)`` asks the card for a truth value that nobody knows.  Where one
answer raises and the other goes on, the one that goes on is assumed: found in the source of the line that
asked, so for every library and program alike."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from types import FrameType


def passing(frame: FrameType | None) -> bool | None:
    """The truth value with which the statement that `frame` is at doesn't raise; None: either may go on."""
    if frame is None:
        return None
    return _passing_at(frame.f_code.co_filename, frame.f_lineno)


@lru_cache(maxsize=4096)
def _passing_at(filename: str, line: int) -> bool | None:
    for statement in _statements(filename):
        if isinstance(statement, ast.Assert) and _covers(statement, line):
            return _wanted(statement.test, True)
        if isinstance(statement, ast.If) and _covers(statement.test, line):
            return _of_branches(statement)
    return None


@lru_cache(maxsize=256)
def _statements(filename: str) -> tuple[ast.stmt, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, (ast.If, ast.Assert)))


def _of_branches(statement: ast.If) -> bool | None:
    body, otherwise = any(map(_raises, statement.body)), any(map(_raises, statement.orelse))
    if body == otherwise:
        return None
    return _wanted(statement.test, otherwise)


def _wanted(test: ast.expr, result: bool) -> bool | None:
    """What the value within `test` must be for `test` to come out as `result`; None where that is not plain."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _wanted(test.operand, not result)
    if isinstance(test, ast.BoolOp):
        found = {_wanted(each, result) for each in test.values}
        return found.pop() if len(found) == 1 else None
    return None if isinstance(test, ast.Compare) else result


def _raises(statement: ast.stmt) -> bool:
    """``raise ...`` or ``torch._assert(False, ...)``, as torchvision writes it."""
    if isinstance(statement, ast.Raise):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not call.args:
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    first = call.args[0]
    return name == "_assert" and isinstance(first, ast.Constant) and first.value is False


def _covers(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)
