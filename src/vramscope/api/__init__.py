"""The Python API: it joins the floors below it.  `vramscope predict` is this with flags.

The program always runs in a fresh process, so it makes no difference what the calling
one, a notebook for instance, has already imported."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vramscope.api.measuring import measure_program
from vramscope.api.planning import make_plan, plan
from vramscope.api.predicting import run_program
from vramscope.api.program import script
from vramscope.api.setting import (
    DEFAULT_CARD,
    DEFAULT_STEPS,
    MOST_GPUS,
    assumptions,
    card_named,
    checked_gpus,
    memory_of,
    steps_of,
)
from vramscope.run.function import function_name, write_call
from vramscope.run.report import Report
from vramscope.virtual.setting import Setting

if TYPE_CHECKING:
    from vramscope.analysis.compare.figures import Comparison
    from vramscope.analysis.explain.finding import Finding
    from vramscope.run.run import Run
    from vramscope.virtual.program import Program

__all__ = [
    "DEFAULT_CARD",
    "DEFAULT_STEPS",
    "MOST_GPUS",
    "Setting",
    "assumptions",
    "card_named",
    "checked_gpus",
    "compare",
    "explain",
    "load",
    "make_plan",
    "measure",
    "measure_program",
    "memory_of",
    "plan",
    "predict",
    "run_program",
    "script",
    "steps_of",
]


def predict(
    target: str | os.PathLike[str] | Callable[[], object],
    gpu: str | None = None,
    *,
    gpus: int = 1,
    memory: str | int | None = None,
    steps: int | Literal["all"] | None = DEFAULT_STEPS,
    assume: str | Mapping[str, object] | None = None,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    save: str | os.PathLike[str] | None = None,
) -> Report:
    """Runs a program on a card that isn't there and reports the memory it takes.

    target        a script's path, or a function of no arguments that can be pickled
    gpu           a card's name (`vramscope gpus`); None: the machine's own card, else an RTX 4090
    gpus          so many of them, 1 to 64
    memory        bytes or a text like "12GiB" instead of the card's memory, or "unlimited"
    steps         optimizer steps after which the program is stopped; "all" or None: it runs to its end
    assume        values to take for what is read back from the card, {"nonzero": 0.5}
    arguments     the script's command line
    environment   its environment variables instead of this process's
    save          a path for the whole run, which `load` reads

    A program that crashes or runs out of memory is no error: the report says so.  Raises
    VramscopeError (UsageError, TorchError, BuildError ...) where nothing could be predicted."""
    setting = Setting(
        card_named(gpu),
        checked_gpus(gpus),
        memory_of(memory),
        steps_of(steps),
        assumptions(assume),
        environment,
    )
    return _reported_run(target, arguments, lambda program: run_program(program, setting), save)


def measure(
    target: str | os.PathLike[str] | Callable[[], object],
    *,
    steps: int | Literal["all"] | None = DEFAULT_STEPS,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    save: str | os.PathLike[str] | None = None,
) -> Report:
    """Runs a program on this machine's GPU and reports the memory it took; `predict` without the virtual card.

    The arguments are those of `predict`.  Raises NoGpuError where there is no card."""
    wanted = steps_of(steps)
    return _reported_run(
        target, arguments, lambda program: measure_program(program, wanted, environment), save
    )


def load(path: str | os.PathLike[str]) -> Run:
    """A run that was saved; RunError says what is wrong with a file that is none.  Needs no torch."""
    from vramscope.run.store import load_run

    return load_run(path)


def explain(run: Run, others: Sequence[Run] = ()) -> tuple[Finding, ...]:
    """What puzzles people about a run, answered with its numbers; `others` ran under other settings."""
    from vramscope.analysis.explain import explain as answers

    return answers(run, others)


def compare(a: Run, b: Run) -> Comparison:
    """Two runs side by side: by category, phase and module, and why they differ."""
    from vramscope.analysis.compare import compare as compared

    return compared(a, b)


def _reported_run(
    target: str | os.PathLike[str] | Callable[[], object],
    arguments: Sequence[str],
    run: Callable[[Program], Run],
    save: str | os.PathLike[str] | None,
) -> Report:
    """The report of a script's run or of a function's, which is called from a script of ours."""
    if isinstance(target, (str, os.PathLike)):
        found = run(script(target, arguments))
    else:
        with tempfile.TemporaryDirectory(prefix="vramscope-") as folder:
            found = run(script(write_call(target, Path(folder)), arguments))
        found = _called(found, (f"{function_name(target)}()", *arguments))
    if save is not None:
        from vramscope.run.store import save_run

        save_run(save, found)
    assert found.report is not None  # only imported snapshots have none
    return found.report


def _called(run: Run, words: tuple[str, ...]) -> Run:
    """The run under the name of the function instead of our script's."""
    assert run.report is not None
    return replace(run, report=replace(run.report, program=words), name=" ".join(words))
