"""`vramscope predict`: a program on a card that isn't there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vramscope import api
from vramscope.cli.console import say, show_report
from vramscope.cli.follow import next_commands
from vramscope.cli.interrupt import counting_interrupts
from vramscope.cli.program import ProgramCommand, own_words, program_of, program_words
from vramscope.cli.status import exit_status, over
from vramscope.errors import RunError, UsageError, VramscopeError
from vramscope.run.report import Report
from vramscope.run.store import Run, save_run
from vramscope.units import parse_size
from vramscope.views.report_json import to_json

if TYPE_CHECKING:
    from vramscope.virtual.launch import Program


@click.command(cls=ProgramCommand)
@click.option("--gpu", metavar="CARD", help="The card: rtx-3060, h100 ... [this machine's, else rtx-4090]")
@click.option("--gpus", metavar="N", type=int, default=1, help="So many of them. [1]")
@click.option("--memory", metavar="SIZE", help="Instead of the card's memory: 12GiB, 24GB or unlimited.")
@click.option("--steps", metavar="N", default="3", help="Stop after N optimizer steps, or all. [3]")
@click.option("-o", "run_path", metavar="RUN", help="Save the run (train.vram) for `vramscope show`.")
@click.option("--json", "json_path", metavar="FILE", help="Write the report as JSON; - is stdout.")
@click.option("--fail-over", metavar="SIZE", help="End with status 4 if the process total is over SIZE.")
@click.option("--assume", metavar="KEY=VALUE", multiple=True, help="A value to be read back from the card.")
@click.pass_context
def predict(
    ctx: click.Context,
    gpu: str | None,
    gpus: int,
    memory: str | None,
    steps: str,
    run_path: str | None,
    json_path: str | None,
    fail_over: str | None,
    assume: tuple[str, ...],
) -> int:
    """Run a PyTorch program, unchanged, on a card that isn't there, and report its memory.

    All that follows the script belongs to the program. Its output and its exit status are its own;
    vramscope speaks on stderr. Status 3: out of memory, 4: over --fail-over, 2: wrong usage."""
    program = program_of(program_words(ctx))
    limit = None if fail_over is None else parse_size(fail_over)
    memory_bytes, count = api.memory_of(memory), api.checked_gpus(gpus)
    number, assumed = api.steps_of(steps), api.assumptions(assume)
    for path in (run_path, None if json_path == "-" else json_path):
        _check_writable(path)
    card = api.card_named(gpu)
    if gpu is None:
        say(f"no --gpu given: taking {card.name} (--gpu {card.id})")
    run = _run(program, api.Setting(card, count, memory_bytes, number, assumed))
    show_report(run.report, next_commands(run.report, own_words(ctx), program_words(ctx), run_path))
    _keep(run, run_path, json_path)
    _judge(run.report, limit)
    return exit_status(run.report, limit)


def _run(program: Program, setting: api.Setting) -> Run:
    with counting_interrupts() as interrupts:
        try:
            return api.run_program(program, setting)
        except VramscopeError as error:
            if interrupts.count:  # the compiler, for one, was interrupted with us
                raise click.Abort from error
            raise


def _check_writable(path: str | None) -> None:
    """Before minutes of work, not after."""
    if path is None:
        return
    place = Path(path)
    if place.is_dir():
        raise UsageError(f"{path} is a folder: name the file to write")
    if not place.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {place.parent} to write {place.name} into")


def _keep(run: Run, run_path: str | None, json_path: str | None) -> None:
    if run_path is not None:
        save_run(run_path, run)
    if json_path == "-":
        print(to_json(run.report), end="", file=sys.stdout)
    elif json_path is not None:
        try:
            Path(json_path).write_text(to_json(run.report), encoding="utf-8")
        except OSError as error:
            raise RunError(f"cannot write {json_path}: {error.strerror}; choose another place") from error


def _judge(report: Report, limit: int | None) -> None:
    if limit is not None and (verdict := over(report, limit)):
        say(verdict)
