"""Freezing parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vramscope.errors import RecipeError

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

_PART = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?")
_FIRST = """\
modules = list(model.modules())
for module in modules[: round({part} * len(modules))]:  # the first ones
    for parameter in module.parameters(recurse=False):
        parameter.requires_grad_(False)"""
_NAMED = """\
for name, parameter in model.named_parameters():
    if fnmatch.fnmatch(name, "{pattern}"):
        parameter.requires_grad_(False)"""


def freeze_of(text: str) -> str:
    """A part of the modules, more than 0 and less than 1, or a pattern of parameters' names."""
    if not _PART.fullmatch(text):
        return _pattern(text)
    part = float(text)
    if not 0 < part <= 1:
        raise RecipeError(f"tune=freeze:{text}: the part of the modules must be more than 0 and at most 1")
    return repr(part)


def _pattern(text: str) -> str:
    if not text or set(text) & set('"\\,'):
        raise RecipeError(f"tune=freeze:{text}: write a part, 0.9, or a pattern of names, layer1.*")
    return text


def write_freeze(argument: str, script: Script, work: Work) -> None:
    """Writes the loop that freezes."""
    if _PART.fullmatch(argument):
        script.model.append(_FIRST.format(part=argument))
        return
    script.imports.add("import fnmatch")
    script.model.append(_NAMED.format(pattern=argument))
