"""`vramscope import`: a memory snapshot of torch's as a run."""

from __future__ import annotations

import click

from vramscope.cli.console import show_text


@click.command(name="import")
@click.argument("snapshot", metavar="SNAPSHOT.pickle")
@click.option("-o", "output", metavar="RUN", required=True, help="Where to save the run.")
def import_(snapshot: str, output: str) -> None:
    """Make a run of a memory snapshot that torch.cuda.memory._dump_snapshot wrote.

    Every verb that reads a run then reads it. Nothing in the snapshot is executed."""
    from vramscope.analysis.lookup import chosen_trace
    from vramscope.analysis.summary import summary
    from vramscope.run.snapshot import import_snapshot
    from vramscope.run.store import save_run
    from vramscope.views.summary_text import summary_text

    run = import_snapshot(snapshot)
    save_run(output, run)
    found = summary(run, chosen_trace(run))
    show_text(lambda layout: summary_text(found, None, layout))
