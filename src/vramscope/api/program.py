"""A program, and what a run of it is told by: its words and paths, without those of this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vramscope.errors import UsageError
from vramscope.run.journal import Journal
from vramscope.run.paths import shorter_paths, without_folders

if TYPE_CHECKING:
    from vramscope.virtual.launch import Program


def script(path: str | os.PathLike[str], arguments: Sequence[str] = ()) -> Program:
    """A script with its arguments; UsageError if there is none."""
    from vramscope.virtual.launch import Program

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


def split_journal(journal: Journal, program: Program) -> tuple[Journal, Journal]:
    """The journal that a Run keeps and the history that its traces are made from, without this machine's paths."""
    from vramscope.run.assemble import split

    folder = _folder(program)
    short, long = split(journal)
    return without_folders(short, folder), without_folders(long, folder)


def shown_words(program: Program) -> tuple[str, ...]:
    """The program's words as a report has them."""
    folder = _folder(program)
    return tuple(shorter_paths(word, folder) for word in _words(program))


def _folder(program: Program) -> str:
    """The folder that paths are told from: the script's, or the current one for -m and -c."""
    return str(Path(program.target).absolute().parent if program.kind == "script" else Path.cwd())


def _words(program: Program) -> tuple[str, ...]:
    flag = {"module": ("-m",), "code": ("-c",)}.get(program.kind, ())
    target = str(Path(program.target).absolute()) if program.kind == "script" else program.target
    return (*flag, target, *program.arguments)
