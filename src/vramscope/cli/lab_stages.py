"""`vramscope lab stages`: the article's staged measurement, for any model."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from vramscope.api.program import refuse_nested
from vramscope.cli.console import show_text
from vramscope.cli.outcome import check_writable
from vramscope.cli.progress import progress_bar
from vramscope.cli.writing import write_file, write_text
from vramscope.errors import UsageError

if TYPE_CHECKING:
    from vramscope.lab.stages.asking import Asked
    from vramscope.lab.stages.making import Made

DOES_NOT_FIT = 3
BROKE_OFF = 1
_SHAPES = ("batch", "image", "seq")


@click.command()
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option("--batch", metavar="N", type=click.IntRange(min=1), help="Samples. [images: 90]")
@click.option(
    "--image", metavar="N", type=click.IntRange(min=1), help="The side of the images. [the model's own]"
)
@click.option("--seq", metavar="N", type=click.IntRange(min=1), help="The length of texts, in tokens. [512]")
@click.option("--no-activations", is_flag=True, help="The article's tiny input: batch 1, image 64, seq 16.")
@click.option(
    "--all", "both", is_flag=True, help="Both sizes; without MODEL, of the article's three ResNets."
)
@click.option("--gpu", metavar="CARD", help="The card to predict for. [this machine's, else rtx-3060]")
@click.option("--memory", metavar="SIZE", help="Instead of the card's memory: 12GiB, 24GB or unlimited.")
@click.option("--no-measure", is_flag=True, help="Predict only, even if this machine has a card.")
@click.option("--emit", metavar="FILE", help="Write the program: plain PyTorch.")
@click.option("-o", "run_path", metavar="RUN", help="Save the predicted run for `vramscope show`.")
@click.option("--json", "json_path", metavar="FILE", help="Write all of it as JSON; - is stdout.")
def stages(models: tuple[str, ...], **given: Any) -> int:
    """What is reserved after each stage of one Adam step, beside a formula and what was measured.

    MODEL is a name of timm (resnet50), torchvision/NAME, hf/REPO, hf/FOLDER or hf/TYPE?key=value&….
    Status 3: it does not fit, 1: its program broke off, 2: wrong usage."""
    refuse_nested("measured")
    check_writable(given["emit"], given["run_path"], given["json_path"])
    wanted = _asked(models, given)
    if len(wanted) > 1 and (given["emit"] or given["run_path"]):
        raise UsageError("--emit and -o hand on one program: name one MODEL, without --all")
    made = _made(wanted)
    if given["json_path"] != "-":
        from vramscope.views.stages_lab_text import stages_lab_text

        found = [each.staged for each in made]
        show_text(lambda layout: stages_lab_text(found, layout), _next(given))
    _write_files(made, given)
    return _status(made)


def _asked(models: Sequence[str], given: dict[str, Any]) -> list[Asked]:
    from vramscope.api.stages import asked_stages
    from vramscope.lab.stages.asking import MODELS

    if not models and not given["both"]:
        raise UsageError("name a MODEL, as resnet18; or --all for the article's three")
    if given["both"] and given["no_activations"]:
        raise UsageError("--all has both sizes: leave --no-activations out")
    sizes = (False, True) if given["both"] else (given["no_activations"],)
    return [
        asked_stages(
            model,
            given["gpu"],
            {name: given[name] for name in _SHAPES if tiny == sizes[0]},
            tiny=tiny,
            memory=given["memory"],
            measures=not given["no_measure"],
        )
        for tiny in sizes
        for model in models or MODELS
    ]


def _made(wanted: Sequence[Asked]) -> list[Made]:
    from vramscope.lab.stages.making import make_all

    with progress_bar() as tell:
        return make_all(wanted, tell)


def _next(given: dict[str, Any]) -> tuple[str, ...]:
    if not given["run_path"]:
        return ()
    return (shlex.join(["vramscope", "show", given["run_path"], "--stages"]),)


def _write_files(made: Sequence[Made], given: dict[str, Any]) -> None:
    from vramscope.views.stages_lab_json import stages_lab_json

    write_text(given["json_path"], lambda: stages_lab_json([each.staged for each in made]))
    write_text(given["emit"], lambda: made[0].program)
    if given["run_path"]:
        from vramscope.run.store import run_bytes

        write_file(given["run_path"], run_bytes(made[0].run))


def _status(made: Sequence[Made]) -> int:
    if any(each.staged.failure for each in made):
        return DOES_NOT_FIT
    return BROKE_OFF if any(each.staged.why_not for each in made) else 0
