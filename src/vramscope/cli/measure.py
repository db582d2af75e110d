"""`vramscope measure SCRIPT`: the real card."""

from __future__ import annotations

import click

from vramscope import api
from vramscope.cli.outcome import Wishes, check_writable, concluded, uninterrupted
from vramscope.cli.program import ProgramCommand, program_of, program_words
from vramscope.units import parse_size


@click.command(cls=ProgramCommand)
@click.option("--steps", metavar="N", default="3", help="Stop after N optimizer steps, or all. [3]")
@click.option("-o", "run_path", metavar="RUN", help="Save the run (train.vram) for `vramscope show`.")
@click.option("--json", "json_path", metavar="FILE", help="Write the report as JSON; - is stdout.")
@click.option("--fail-over", metavar="SIZE", help="End with status 4 if the process total is over SIZE.")
@click.pass_context
def measure(
    ctx: click.Context, steps: str, run_path: str | None, json_path: str | None, fail_over: str | None
) -> int:
    """Run a PyTorch program, unchanged, on this machine's GPU, and report its memory.

    The same recorder as `predict`, and what NVML tells of the process meanwhile. All that follows
    the script belongs to the program. Status as for `predict`; 2 where there is no GPU."""
    program = program_of(program_words(ctx))
    limit = None if fail_over is None else parse_size(fail_over)
    number = api.steps_of(steps)
    check_writable(run_path, json_path)
    run = uninterrupted(lambda: api.measure_program(program, number))
    return concluded(run, ctx, Wishes(run_path, json_path, limit))
