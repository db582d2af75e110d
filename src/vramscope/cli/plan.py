"""`vramscope plan`: what fits, with which technique, at which batch, on which card."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from vramscope import api
from vramscope.cli.console import say, show_text
from vramscope.cli.outcome import check_writable
from vramscope.cli.progress import progress_bar
from vramscope.cli.writing import write_file, write_text
from vramscope.errors import UsageError
from vramscope.jobs.knobs import KNOBS
from vramscope.jobs.technique import AUTO, Knob, Technique

if TYPE_CHECKING:
    from vramscope.planning.making import Planned
    from vramscope.planning.plan import Plan

DOES_NOT_FIT = 3


def _with_knobs(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option for every knob."""
    for knob in reversed(KNOBS):
        metavar = "N" if knob.number is not None else knob.name.rpartition("-")[2].upper()
        command = click.option(f"--{knob.name}", metavar=metavar, help=_help(knob))(command)
    return command


def _help(knob: Knob) -> str:
    """What it turns, its positions and the one that it has if nobody turns it."""
    positions = [] if knob.number is not None else [_shown(each) for each in knob.techniques]
    told = f": {', '.join(positions)}" if positions else ""
    return f"{knob.summary}{told}." + (f" [{knob.default}]" if knob.default != AUTO else "")


def _shown(technique: Technique) -> str:
    if technique.argument is None:
        return technique.name
    return f"{technique.name}[:…]" if technique.usual is not None else f"{technique.name}:…"


class PlanCommand(click.Command):
    """Keeps its words for the commands that it ends with."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses them as they are."""
        ctx.meta["vramscope.own"] = tuple(args)
        return super().parse_args(ctx, args)


@click.command(cls=PlanCommand)
@click.argument("source", metavar="SOURCE")
@click.option("--gpu", metavar="CARD[,CARD]", help="The cards. [this machine's, else rtx-4090]")
@click.option("--memory", metavar="SIZE", help="Instead of each card's memory: 12GiB, 24GB or unlimited.")
@click.option("--used", metavar="SIZE", help="What other processes hold on the card.")
@click.option(
    "--vary", metavar="KNOB=V,V", multiple=True, help="A dimension of the matrix; the first is the baseline."
)
@click.option("--fit", metavar="KNOB", help="The largest batch, seq, image, lora-rank or layers that runs.")
@click.option("--margin", metavar="SIZE|%", help="With --fit: so much of the card stays free.")
@click.option("--multiple-of", metavar="N", type=int, help="With --fit: only multiples of N.")
@click.option("--cheapest", is_flag=True, help="The smallest card on which it fits.")
@click.option(
    "--budget", metavar="SIZE", help="What would make it fit into so much memory, and what that costs."
)
@click.option("--cell", metavar="N", type=int, help="The row that --emit and -o hand on. [the only one]")
@click.option("--emit", metavar="FILE", help="Write the row's program: plain PyTorch.")
@click.option("-o", "run_path", metavar="RUN", help="Save the row's run for `vramscope show`.")
@click.option("--csv", "csv_path", metavar="FILE", help="Write the table as CSV; - is stdout.")
@click.option("--json", "json_path", metavar="FILE", help="Write all of it as JSON; - is stdout.")
@click.option("--html", "html_path", metavar="FILE", help="Write a page with a heat map and bars.")
@click.option(
    "--sort",
    metavar="memory|order",
    type=click.Choice(["memory", "order"]),
    default="memory",
    help="The table's order. [memory]",
)
@click.option(
    "--out", metavar="DB", help="Keep finished cells in a file; started again, it goes on from there."
)
@click.option("--jobs", metavar="N", type=int, help="Cells side by side. [processors, at most 8]")
@click.option("--dask", metavar="ADDRESS", help="Run the cells on a Dask cluster instead.")
@click.option("--limit", metavar="SECONDS", type=float, help="The longest that a cell may take.")
@_with_knobs
@click.pass_context
def plan(ctx: click.Context, /, source: str, **given: Any) -> int:
    """Run a model's training or inference steps on cards that aren't there, in every combination asked for.

    SOURCE is timm/NAME, torchvision/NAME, hf/REPO, hf/FOLDER, hf/TYPE?key=value&…, diffusers/CLASS or
    module:function. Weights are never downloaded. Status 3: nothing fits, 2: wrong usage."""
    files = [given[each] for each in ("emit", "run_path", "csv_path", "json_path", "html_path", "out")]
    check_writable(*files)
    if given["cell"] is not None and not (given["emit"] or given["run_path"]):
        raise UsageError("--cell names the row for --emit and -o: give one of them")
    planned = _planned(source, given)
    found = planned.plan
    number = _row_wanted(found, given)
    if "-" not in (given["csv_path"], given["json_path"]):
        commands = _next(ctx, found, given)
        from vramscope.views.plan_text import plan_text

        show_text(lambda layout: plan_text(found, layout, given["sort"]), commands)
    _write_files(found, planned, number, given)
    return 0 if _anything_fits(found) else DOES_NOT_FIT


def own_words(ctx: click.Context) -> tuple[str, ...]:
    """The words behind the verb, as they were given."""
    return tuple(ctx.meta["vramscope.own"])


def _planned(source: str, given: dict[str, Any]) -> Planned:
    """The plan; Ctrl-C leaves what is finished in the file of --out."""
    knobs = {knob.name: given[knob.name.replace("-", "_")] for knob in KNOBS}
    try:
        with progress_bar() as tell:
            return api.make_plan(
                source,
                given["gpu"],
                knobs={name: text for name, text in knobs.items() if text is not None},
                vary=_varied(given["vary"]),
                memory=given["memory"],
                used=given["used"],
                fit=given["fit"],
                margin=given["margin"],
                multiple_of=given["multiple_of"],
                cheapest=given["cheapest"],
                budget=given["budget"],
                out=given["out"],
                jobs=given["jobs"],
                dask=given["dask"],
                limit_s=given["limit"],
                progress=tell,
            )
    except KeyboardInterrupt:
        if given["out"]:
            say(
                f"interrupted; the cells that are finished are in {given['out']}: the same command goes on from there"
            )
        raise


def _varied(words: Sequence[str]) -> dict[str, list[str]]:
    """``tune=full,lora:8`` → {"tune": ["full", "lora:8"]}"""
    found: dict[str, list[str]] = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not equals:
            raise UsageError(f"--vary {word}: write what to vary and its values, as precision=fp32,amp-bf16")
        found.setdefault(name.strip(), []).extend(each for each in values.split(",") if each.strip())
    return found


def _row_wanted(found: Plan, given: dict[str, Any]) -> int | None:
    """The number of the row that is handed on; None: nothing is."""
    if not (given["emit"] or given["run_path"]):
        return None
    from vramscope.planning.making import sole

    return sole(found.rows, given["cell"]).number


def _write_files(found: Plan, planned: Planned, number: int | None, given: dict[str, Any]) -> None:
    """All that was wanted beside the table."""
    from vramscope.views.plan_csv import plan_csv
    from vramscope.views.plan_json import plan_json

    write_text(given["csv_path"], lambda: plan_csv(found))
    write_text(given["json_path"], lambda: plan_json(found))
    if given["html_path"]:
        from vramscope.views.plan_page import plan_page

        write_text(given["html_path"], lambda: plan_page(found))
    if number is not None:
        _hand_on(planned, number, given)


def _hand_on(planned: Planned, number: int, given: dict[str, Any]) -> None:
    """The row's program and its run."""
    from vramscope.jobs.write import write_program

    work, run = planned.works.get(number), planned.runs.get(number)
    if work is None:
        raise UsageError(f"row {number} cannot run, so there is nothing to hand on")
    write_text(given["emit"], lambda: write_program(work).render())
    if given["run_path"]:
        if run is None:
            raise UsageError(f"row {number} left no run: it was ended before it could")
        write_file(given["run_path"], run)


def _next(ctx: click.Context, found: Plan, given: dict[str, Any]) -> tuple[str, ...]:
    """What to do next, ready to be copied."""
    own = ["vramscope", "plan", *own_words(ctx)]
    if given["run_path"]:
        return (shlex.join(["vramscope", "explain", given["run_path"]]),)
    if given["emit"] or given["html_path"] or not found.rows:
        return ()
    number = ["--cell", str(found.rows[0].number)] if len(found.rows) > 1 else []
    return (shlex.join([*own, *number, "--emit", f"{found.source.rpartition('/')[2] or 'program'}.py"]),)


def _anything_fits(found: Plan) -> bool:
    """Of what was asked for."""
    if found.budget is not None:
        return bool(found.budget.ways) or found.budget.asked.fits
    if found.cheapest:
        return any(each.card for each in found.cheapest)
    if found.fits:
        return any(each.largest is not None for each in found.fits)
    return any(row.result.fits for row in found.rows)
