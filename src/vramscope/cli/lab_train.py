"""`vramscope lab train`: real trainings in several precisions and ways of tuning, beside their predicted memory."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vramscope.api.laboratory import lab_train
from vramscope.cli.console import say, show_text
from vramscope.cli.outcome import check_writable
from vramscope.cli.writing import write_file, write_text
from vramscope.errors import RunError, UsageError

if TYPE_CHECKING:
    from vramscope.lab.grid import Grid

NOTHING_TRAINED = 1
_OWN = "vramscope.lab.own"


class TrainCommand(click.Command):
    """Keeps its words for the commands that it ends with."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses them as they are."""
        ctx.meta[_OWN] = tuple(args)
        return super().parse_args(ctx, args)


@click.command(cls=TrainCommand)
@click.option(
    "--model", metavar="SOURCE", default="resnet18", help="A timm model, or a SOURCE of `plan`. [resnet18]"
)
@click.option("--data", metavar="DATA", default="fake", help="fake, flowers102 or folder:PATH. [fake]")
@click.option("--size", metavar="N", type=int, help="Images of fake, and as many to evaluate on. [1020]")
@click.option("--image", metavar="N", type=int, help="The side of the images. [what the model was made for]")
@click.option("--precision", metavar="P,P", help="Of fp32, amp-fp16, amp-bf16, bf16. [fp32,amp-fp16]")
@click.option(
    "--tune",
    metavar="T,T",
    help="Of full, freeze:R, lora:R, dora:R, article-freeze, article-lora. [full,freeze:0.95,lora:4]",
)
@click.option("--batch", metavar="N", type=int, help="Images in a step. [90]")
@click.option("--epochs", metavar="N", type=int, help="Passes over the data. [1]")
@click.option("--optimizer", metavar="NAME", help="As in `plan`. [adam]")
@click.option("--lr", metavar="RATE", type=float, help="The learning rate. [the optimizer's usual one]")
@click.option("--seed", metavar="N", type=int, help="The same seed, the same training. [0]")
@click.option("--device", metavar="DEVICE", help="cuda, mps or cpu. [the first that is here]")
@click.option("--gpu", metavar="CARD", help="The virtual card of the predictions. [rtx-3060]")
@click.option("--predict-batch", "predicted_batch", metavar="N", type=click.IntRange(1), help="Theirs. [90]")
@click.option("--predict-image", "predicted_image", metavar="N", type=click.IntRange(1), help="Theirs. [224]")
@click.option("--out", metavar="DB", help="Where finished cells are kept. [a file in your cache]")
@click.option("--again", is_flag=True, help="Train finished cells again.")
@click.option("--workers", metavar="N", type=int, help="Processes that read images. [2, for fake none]")
@click.option("--data-root", metavar="DIR", help="Where Flowers102 is or goes. [your cache]")
@click.option("--csv", "csv_path", metavar="FILE", help="Write the table as CSV; - is stdout.")
@click.option("--json", "json_path", metavar="FILE", help="Write all of it as JSON; - is stdout.")
@click.option("--plots", "plots_path", metavar="DIR", help="Draw memory, curves and speed, as PNG and SVG.")
@click.pass_context
def train(
    ctx: click.Context, /, csv_path: str | None, json_path: str | None, plots_path: str | None, **given: Any
) -> int:
    """Train an image classifier for real, in every precision with every way of tuning, and predict its memory.

    Each cell is a process of its own. What is finished is kept: the same command, started again, goes on from
    there. Status 1: no cell came to its end, 2: wrong usage."""
    check_writable(csv_path, json_path, given["out"])
    _check_plots(plots_path)
    grid = _trained(given)
    if "-" not in (csv_path, json_path):
        from vramscope.views.grid_text import grid_text

        commands = next_commands(tuple(ctx.meta[_OWN]), grid, plots_path)
        show_text(lambda layout: grid_text(grid, layout), commands)
    _write_files(grid, csv_path, json_path, plots_path)
    return 0 if any(cell.epochs for cell in grid.cells) else NOTHING_TRAINED


def _check_plots(path: str | None) -> None:
    """Before hours of training, not after."""
    if path is None:
        return
    from vramscope.views.grid_plots import check_library

    check_library()
    place = Path(path)
    if place.exists() and not place.is_dir():
        raise UsageError(f"--plots {path}: it is a file; name a folder")
    if not place.absolute().parent.is_dir():
        raise UsageError(f"--plots {path}: there is no folder {place.parent} to make it in")


def _trained(given: dict[str, Any]) -> Grid:
    """The grid; Ctrl-C leaves what is finished where it is kept."""
    from vramscope.cli.lab_progress import training_bars

    try:
        with training_bars() as hear:
            return lab_train(**given, progress=hear)
    except KeyboardInterrupt:
        say("interrupted; finished cells are kept: the same command goes on from there")
        raise


def next_commands(own: tuple[str, ...], grid: Grid, plots_path: str | None) -> tuple[str, ...]:
    """What to do next, ready to be copied."""
    if plots_path or not any(cell.epochs for cell in grid.cells):
        return ()
    return (shlex.join(["vramscope", "lab", "train", *own, "--plots", "plots"]),)


def _write_files(grid: Grid, csv_path: str | None, json_path: str | None, plots_path: str | None) -> None:
    """All that was wanted beside the tables."""
    from vramscope.views.grid_csv import grid_csv
    from vramscope.views.grid_json import grid_json

    write_text(csv_path, lambda: grid_csv(grid))
    write_text(json_path, lambda: grid_json(grid))
    if plots_path is not None:
        _write_plots(grid, Path(plots_path))


def _write_plots(grid: Grid, folder: Path) -> None:
    from vramscope.views.grid_plots import grid_plots

    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot make {folder}: {error.strerror}; choose another place") from error
    for name, data in grid_plots(grid).items():
        write_file(folder / name, data)
