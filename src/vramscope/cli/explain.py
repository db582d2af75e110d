"""`vramscope explain`: the puzzling numbers of a saved run, and what would lower them."""

from __future__ import annotations

import sys

import click

from vramscope.cli.console import show_text


@click.command()
@click.argument("run_path", metavar="RUN")
@click.option(
    "--with",
    "others",
    metavar="OTHER",
    multiple=True,
    help="A run of the same program under other settings, to tell what they save.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON (vramscope.explain/1).")
def explain(run_path: str, others: tuple[str, ...], as_json: bool) -> None:
    """Explain a saved run: what its peak is made of, why numbers differ, what looks wrong, what would help."""
    from vramscope.analysis import explain as analysis
    from vramscope.run.store import load_run
    from vramscope.views.explain_json import explain_json
    from vramscope.views.explain_text import explain_text

    run = load_run(run_path)
    findings = analysis.explain(run, [load_run(each) for each in others])
    unknown = analysis.cannot_tell(run)
    if as_json:
        print(explain_json(run, findings, unknown), end="", file=sys.stdout)
    else:
        show_text(lambda layout: explain_text(findings, unknown, layout))
