"""`vramscope predict`: a program on a card that isn't there."""

from __future__ import annotations

import click

from vramscope import api
from vramscope.cli.console import say
from vramscope.cli.outcome import Wishes, check_writable, concluded, uninterrupted
from vramscope.cli.program import ProgramCommand, program_of, program_words
from vramscope.units import parse_size


@click.command(cls=ProgramCommand)
@click.option("--gpu", metavar="CARD", help="The card: rtx-3060, h100 ... [this machine's, else rtx-4090]")
@click.option("--gpus", metavar="N", type=int, default=1, help="So many of them. [1]")
@click.option("--memory", metavar="SIZE", help="Instead of the card's memory: 12GiB, 24GB or unlimited.")
@click.option("--steps", metavar="N", default="3", help="Stop after N optimizer steps, or all. [3]")
@click.option("-o", "run_path", metavar="RUN", help="Save the run (train.vram) for `vramscope show`.")
@click.option("--no-history", is_flag=True, help="Peaks only: faster, but without --peak, explain ...")
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
    no_history: bool,
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
    check_writable(run_path, json_path)
    card = api.card_named(gpu)
    if gpu is None:
        say(f"no --gpu given: taking {card.name} (--gpu {card.id})")
    setting = api.Setting(card, count, memory_bytes, number, assumed, history=not no_history)
    run = uninterrupted(lambda: api.run_program(program, setting))
    return concluded(run, ctx, Wishes(run_path, json_path, limit))
