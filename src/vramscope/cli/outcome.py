"""What `predict` and `measure` do with a run: show it, keep it, judge it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vramscope.cli.console import say, show_text
from vramscope.cli.follow import next_commands
from vramscope.cli.interrupt import counting_interrupts
from vramscope.cli.program import own_words, program_words
from vramscope.cli.status import exit_status, over
from vramscope.cli.writing import write_text
from vramscope.errors import UsageError, VramscopeError
from vramscope.views.report_json import to_json

if TYPE_CHECKING:
    from vramscope.run.run import Run


@dataclass(frozen=True, slots=True)
class Wishes:
    """Where the run and the report go, and what must not be exceeded."""

    run_path: str | None = None
    json_path: str | None = None
    """ "-" is stdout."""
    limit_bytes: int | None = None


def check_writable(*paths: str | None) -> None:
    """UsageError for a place that cannot be written: before minutes of work, not after."""
    for path in paths:
        if path in (None, "-"):
            continue
        place = Path(str(path))
        if place.is_dir():
            raise UsageError(f"{path} is a folder: name the file to write")
        if not place.absolute().parent.is_dir():
            raise UsageError(f"there is no folder {place.parent} to write {place.name} into")


def uninterrupted(run: Callable[[], Run]) -> Run:
    """The run; a Ctrl-C that broke our own work off is one, not an error of ours."""
    with counting_interrupts() as interrupts:
        try:
            return run()
        except VramscopeError as error:
            if interrupts.count:  # the compiler, for one, was interrupted with us
                raise click.Abort from error
            raise


def concluded(run: Run, ctx: click.Context, wishes: Wishes) -> int:
    """Shows the report, writes what is wanted, and gives the exit status."""
    from vramscope.analysis.summary import summary
    from vramscope.views.summary_text import summary_text

    report = run.report
    assert report is not None  # only imported snapshots have none
    verb = ctx.info_name or "predict"
    found = summary(run, run.trace)
    commands = next_commands(report, verb, own_words(ctx), program_words(ctx), wishes.run_path)
    show_text(lambda layout: summary_text(found, report, layout), commands, stdout=False)
    if wishes.run_path is not None:
        from vramscope.run.store import save_run

        save_run(wishes.run_path, run)
    write_text(wishes.json_path, lambda: to_json(report))
    if wishes.limit_bytes is not None and (verdict := over(report, wishes.limit_bytes)):
        say(verdict)
    return exit_status(report, wishes.limit_bytes)
