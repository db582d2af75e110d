"""`vramscope diff`: two saved runs side by side."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from vramscope.cli import console


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="As JSON (vramscope.diff/1).")
def diff(a: str, b: str, as_json: bool) -> None:
    """Compare two saved runs by category, phase and module, and say why they differ.

    Of a prediction and a measurement it shows the residuals: measured − predicted."""
    from vramscope.analysis.compare import compare
    from vramscope.run.store import load_run
    from vramscope.views.compare_json import to_json
    from vramscope.views.compare_text import compare_text

    found = compare(load_run(a), load_run(b))
    if as_json:
        print(to_json(found), end="", file=sys.stdout)
    else:
        console.show_text(lambda layout: compare_text(found, layout, (Path(a).name, Path(b).name)))
