"""The commands that a report ends with: what to do next, ready to be copied."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from vramscope.run.report import DOES_NOT_FIT, Report


def next_commands(
    report: Report, verb: str, own: Sequence[str], program: Sequence[str], run_path: str | None
) -> tuple[str, ...]:
    """Whole command lines; `verb`, `own` and `program` are the words of this one."""
    found = []
    if report.verdict == DOES_NOT_FIT and report.capacity_bytes is not None:
        if verb == "predict":
            found.append(_again(verb, "--memory", "unlimited", own, program))
    elif report.verdict == DOES_NOT_FIT:
        found.append("vramscope gpus")
    elif _still_growing(report):
        found.append(_again(verb, "--steps", str(4 * report.stopped.steps), own, program))
    if run_path is not None:
        found.append(f"{shlex.join(['vramscope', 'show', run_path])} --peak")
        found.append(shlex.join(["vramscope", "explain", run_path]))
    return tuple(found)


def _still_growing(report: Report) -> bool:
    return report.stopped.how == "steps" and report.steady_from is None


def _again(verb: str, option: str, value: str, own: Sequence[str], program: Sequence[str]) -> str:
    """The same command with one option changed, and without the files that it would write over."""
    kept = list(own)
    for dropped in (option, "-o", "--json"):
        kept = _without(dropped, kept)
    barrier = ["--"] if program and program[0].startswith("-") and program[0][:2] not in ("-m", "-c") else []
    return shlex.join(["vramscope", verb, *kept, option, value, *barrier, *program])


def _without(option: str, words: Sequence[str]) -> list[str]:
    """The words without an option and its value, in any of `--a b`, `--a=b`, `-o b` and `-ob`."""
    glued = f"{option}=" if option.startswith("--") else option
    kept: list[str] = []
    is_value = False
    for word in words:
        if not is_value and not word.startswith(glued) and word != option:
            kept.append(word)
        is_value = not is_value and word == option
    return kept
