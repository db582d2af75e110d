"""`vramscope show`: a saved run's report."""

from __future__ import annotations

import sys

import click

from vramscope.cli.console import show_report
from vramscope.run.store import load_run
from vramscope.views.report_json import to_json


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="As JSON (vramscope.report/1).")
def show(run: str, as_json: bool) -> None:
    """Print the report of a run that `vramscope predict -o RUN` saved."""
    report = load_run(run).report
    if as_json:
        print(to_json(report), end="", file=sys.stdout)
    else:
        show_report(report, stdout=True)
