"""A program, and what a run of it is told by: its words and paths, without those of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vramscope.run.journal import Journal
from vramscope.run.paths import shorter_paths, without_folders


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, as Python's own command line takes it: a script, ``-m module`` or ``-c code``."""

    kind: Literal["script", "module", "code"]
    target: str
    arguments: tuple[str, ...] = ()

    def command(self) -> list[str]:
        """The words after the interpreter."""
        flag = {"script": [], "module": ["-m"], "code": ["-c"]}[self.kind]
        return [*flag, self.target, *self.arguments]


def split_journal(journal: Journal, program: Program) -> tuple[Journal, Journal]:
    """The journal that a Run keeps and the history that its traces are made from, without this machine's paths."""
    from vramscope.run.assemble import split  # it brings NumPy

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
