"""A program that is to be run: the one that a path names, and not from within another run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vramscope.errors import UsageError

if TYPE_CHECKING:
    from vramscope.virtual.program import Program


def script(path: str | os.PathLike[str], arguments: Sequence[str] = ()) -> Program:
    """A script with its arguments; UsageError if there is none."""
    from vramscope.virtual.program import Program

    place = Path(path)
    if not place.exists():
        raise UsageError(f"no such script: {place}")
    if place.is_dir() and not (place / "__main__.py").is_file():
        raise UsageError(f"{place} is a folder without a __main__.py: name the script in it")
    return Program("script", os.fspath(path), tuple(map(str, arguments)))


def refuse_nested(what: str, environment: Mapping[str, str] | None = None) -> None:
    """UsageError if this process is itself run under vramscope."""
    if "VRAMSCOPE_JOURNAL" in (os.environ if environment is None else environment):
        raise UsageError(
            f"a program that runs under vramscope asked to be {what} itself; "
            'in a script, put the call under `if __name__ == "__main__":`'
        )
