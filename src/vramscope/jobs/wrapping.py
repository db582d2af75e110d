"""Long lines of code, broken as people break them."""

from __future__ import annotations

import ast
from textwrap import indent, wrap

WIDTH = 100
"""Longer lines are broken."""


def wrapped(code: str) -> str:
    """The code with each long call that stands on one line spread over several, one argument on each."""
    return "\n".join(_wrapped_line(line) for line in code.split("\n"))


def wrapped_title(text: str) -> str:
    """A docstring of that text."""
    one = f'"""{text}"""'
    return (
        one
        if len(one) <= WIDTH
        else '"""{}\n"""'.format("\n".join(wrap(text, WIDTH - 3, break_on_hyphens=False)))
    )


def _wrapped_line(line: str) -> str:
    if len(line) <= WIDTH:
        return line
    code = line.lstrip()
    call = _call_of(code)
    if call is None or call.end_col_offset != len(code) or not (call.args or call.keywords):
        return line
    parts: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    parts.sort(key=lambda each: each.col_offset)
    texts = [ast.get_source_segment(code, each) for each in parts]
    arguments = indent("".join(f"{text},\n" for text in texts), "    ")
    return indent(f"{code[: parts[0].col_offset]}\n{arguments})", line[: len(line) - len(code)])


def _call_of(code: str) -> ast.Call | None:
    """The call that is a whole statement, or all that a statement assigns."""
    try:
        statements = ast.parse(code).body
    except SyntaxError:  # a part of a larger statement
        return None
    value = getattr(statements[0], "value", None) if len(statements) == 1 and code.isascii() else None
    return value if isinstance(value, ast.Call) else None
