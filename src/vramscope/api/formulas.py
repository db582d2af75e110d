"""Closed forms: for a number of parameters, by name, or held against a model's predicted run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vramscope.api.program import refuse_nested
from vramscope.api.setting import card_named
from vramscope.errors import UsageError

if TYPE_CHECKING:
    from vramscope.theory.formula import Formula
    from vramscope.theory.held import Held
    from vramscope.theory.training import Sheet


def formula_sheet(
    parameters: int | str,
    *,
    optimizer: str | None = None,
    precision: str | None = None,
    ranks: int = 8,
    tokens: int | str | None = None,
    gpu: str | None = None,
) -> Sheet:
    """What so many parameters cost while they train.

    parameters   a number, or a text like "11e9" or "6.7B"
    optimizer    of the detailed rows; None: adamw, and all optimizers beside it
    precision    fp32, amp-bf16, bf16, half+master …; None: all schemes
    ranks        so many cards share the model under ZeRO and FSDP
    tokens       of a step, for its operations; gpu, a card's name, adds the shortest time for them

    Raises UsageError for what cannot be."""
    from vramscope.theory.training import sheet

    return sheet(
        whole_number("--params", parameters),
        optimizer=optimizer,
        precision=precision,
        ranks=ranks,
        tokens=None if tokens is None else whole_number("--tokens", tokens),
        card=None if gpu is None else card_named(gpu),
    )


def formula(text: str) -> Formula:
    """A formula of the catalogue, worked out: ``linear:inputs=4096,outputs=11008,rows=2048``.  UsageError if it
    does not exist, or a figure does not go."""
    from vramscope.theory.catalogue import formula_of

    return formula_of(text)


def formula_model(source: str, gpu: str | None = None, *, knobs: Mapping[str, str] | None = None) -> Held:
    """Formulas beside the run that is predicted for a model; the arguments are those of `plan`.

    Raises SourceError, RecipeError, MissingLibraryError for what cannot be had or run."""
    from vramscope.jobs.recipe import recipe_of
    from vramscope.jobs.source import parse_source
    from vramscope.jobs.write import settled
    from vramscope.planning.facts import facts_of
    from vramscope.theory.holding import held

    refuse_nested("predicted")
    card, recipe = card_named(gpu), recipe_of(dict(knobs or {}))
    parsed = parse_source(source)
    return held(settled(parsed, recipe, facts_of(parsed)), card.id)


def whole_number(name: str, text: int | str) -> int:
    """A number as people write it: 11e9, 6.7B, 512; UsageError for a text that is none."""
    from vramscope.theory.catalogue import whole

    number = whole(str(text))
    if number is None:
        raise UsageError(f"{name} {text}: write a whole number, as 11e9, 6.7B or 124439808")
    return number
