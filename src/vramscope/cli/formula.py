"""`vramscope formula`: what closed forms say, for a number of parameters, by name, or beside a model's run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from vramscope.api import formulas as api
from vramscope.cli.console import show_text
from vramscope.cli.outcome import check_writable
from vramscope.cli.writing import write_text
from vramscope.errors import UsageError

if TYPE_CHECKING:
    from vramscope.theory.formula import Formula
    from vramscope.theory.held import Held
    from vramscope.theory.training import Sheet

_OWN_KNOBS = ("batch", "seq", "image", "tune")
"""Options that go with --model alone, beside -s."""
_SHEET_ONLY = ("ranks", "tokens")
_BOTH = ("optimizer", "precision")


@click.command()
@click.argument("named", metavar="[NAME:KEY=VALUE,…]...", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="The formulas that have a name, with their figures.")
@click.option("--params", metavar="N", help="The sheet for so many parameters: 11e9, 6.7B, 124439808.")
@click.option("--model", metavar="SOURCE", help="Formulas beside a predicted run; SOURCE as in `plan`.")
@click.option("--optimizer", metavar="OPTIMIZER", help="adamw, sgd, adamw-8bit, … as in `plan`.")
@click.option(
    "--precision", metavar="PRECISION", help="fp32, amp-bf16, bf16, …; with --params half+master, too."
)
@click.option("--gpu", metavar="CARD", help="The card. [with --model this machine's, else rtx-4090]")
@click.option(
    "--ranks", metavar="N", type=click.IntRange(min=1), help="With --params: cards that share it. [8]"
)
@click.option("--tokens", metavar="N", help="With --params: tokens of a step, for its operations.")
@click.option("--batch", metavar="N", help="With --model: samples in a micro-batch.")
@click.option("--seq", metavar="N", help="With --model: the length of a sequence, in tokens.")
@click.option("--image", metavar="N", help="With --model: the side of the images, in pixels.")
@click.option("--tune", metavar="TUNE", help="With --model: full, freeze:R, lora:R, …")
@click.option(
    "-s", "set_", metavar="KNOB=VALUE", multiple=True, help="With --model: any other knob of `plan`."
)
@click.option("--json", "json_path", metavar="FILE", help="Write all of it as JSON; - is stdout.")
def formula(named: tuple[str, ...], **given: Any) -> int:
    """What closed forms say of memory and operations, each with its assumption and source.

    NAME is one of --list, with its figures: linear:inputs=4096,outputs=11008,rows=2048. Status 2: wrong usage."""
    _check_kind(named, given)
    check_writable(given["json_path"])
    if given["listed"]:
        return _list(given)
    if named:
        return _show_named([api.formula(text) for text in named], given)
    return _show_sheet(given) if given["params"] else _show_model(given)


def _check_kind(named: Sequence[str], given: dict[str, Any]) -> None:
    """UsageError unless exactly one thing is asked for, with options that go with it."""
    kinds = {
        "--list": given["listed"],
        "--params": given["params"],
        "--model": given["model"],
        "NAME:…": named,
    }
    asked = [name for name, value in kinds.items() if value]
    if len(asked) != 1:
        told = f"{' and '.join(asked)} are several things" if asked else "nothing was asked for"
        raise UsageError(f"{told}: give one of --params 11e9, --model SOURCE, --list, or names with figures")
    allowed = {"--params": (*_SHEET_ONLY, *_BOTH, "gpu"), "--model": (*_OWN_KNOBS, *_BOTH, "gpu", "set_")}
    for name in (*_OWN_KNOBS, *_SHEET_ONLY, *_BOTH, "gpu", "set_"):
        if given[name] and name not in allowed.get(asked[0], ()):
            option = "-s" if name == "set_" else f"--{name}"
            homes = [kind for kind, options in allowed.items() if name in options]
            raise UsageError(f"{option} goes with {' and '.join(homes)}, not with {asked[0]}")


def _list(given: dict[str, Any]) -> int:
    from vramscope.theory.catalogue import BY_NAME, usage_of
    from vramscope.views.formula_json import list_json
    from vramscope.views.formula_text import list_text

    told = [(name, (form.__doc__ or "").splitlines()[0], usage_of(name)) for name, form in BY_NAME.items()]
    return _shown(given, lambda layout: list_text(told, layout), list_json(told), ())


def _show_named(found: Sequence[Formula], given: dict[str, Any]) -> int:
    from vramscope.views.formula_json import formulas_json
    from vramscope.views.formula_text import formulas_text

    return _shown(given, lambda layout: formulas_text(found, layout), formulas_json(found), ())


def _show_sheet(given: dict[str, Any]) -> int:
    from vramscope.views.formula_json import sheet_json
    from vramscope.views.formula_text import sheet_text

    found: Sheet = api.formula_sheet(
        given["params"],
        optimizer=given["optimizer"],
        precision=given["precision"],
        ranks=given["ranks"] or 8,
        tokens=given["tokens"],
        gpu=given["gpu"],
    )
    return _shown(given, lambda layout: sheet_text(found, layout), sheet_json(found), ())


def _show_model(given: dict[str, Any]) -> int:
    from vramscope.views.formula_held_text import held_text
    from vramscope.views.formula_json import held_json

    knobs = _knobs(given)
    found: Held = api.formula_model(given["model"], given["gpu"], knobs=knobs)
    turned = [word for name, value in knobs.items() for word in (f"--{name}", value)]
    gpu = ["--gpu", found.card]
    plan = shlex.join(["vramscope", "plan", given["model"], *gpu, *turned])
    return _shown(given, lambda layout: held_text(found, layout), held_json(found), (plan,))


def _knobs(given: dict[str, Any]) -> dict[str, str]:
    """The knobs that were turned, by name."""
    knobs = {name: given[name] for name in (*_OWN_KNOBS, *_BOTH) if given[name] is not None}
    for word in given["set_"]:
        name, equals, value = word.partition("=")
        if not equals or not value.strip():
            raise UsageError(f"-s {word}: write a knob of `plan` and its position, as attention=eager")
        knobs[name.strip()] = value.strip()
    return knobs


def _shown(given: dict[str, Any], draw: Any, told: str, commands: tuple[str, ...]) -> int:
    """On the terminal, and as JSON where that is wanted."""
    if given["json_path"] != "-":
        show_text(draw, commands)
    write_text(given["json_path"], lambda: told)
    return 0
