"""What the reading after each stage should be in closed form, from the input, the parameters and counted activations.

A reading is taken before the cache is emptied, so it holds what is live and all that was obtained since the reading
before.  The forms know tensors alone: no segments, no workspaces, no temporaries.  Three symbols, all in bytes: x the
input, P the parameters, A the counted activations."""

from __future__ import annotations

from vramscope.jobs.facts import Facts
from vramscope.jobs.recipe import Recipe
from vramscope.lab.stages.value import (
    BACKWARD,
    COUNT,
    FORWARD,
    IMPORT,
    INPUT,
    LOSS,
    MODEL,
    NO_GRAD,
    OPTIMIZER,
    SECOND,
    STEP,
    ZERO_GRAD,
)
from vramscope.theory.schemes import scheme_of
from vramscope.theory.states import states_of

_STATES = int(states_of("adam").per_parameter(1) or 0)
"""Of Adam, in sizes of a parameter."""
FORMS: dict[str, tuple[int, int, int]] = {
    IMPORT: (0, 0, 0),
    INPUT: (1, 0, 0),
    MODEL: (1, 1, 0),
    SECOND: (1, 2, 0),
    OPTIMIZER: (1, 1, 0),  # Adam makes its states in the first step
    COUNT: (1, 1, 1),  # the count runs a forward, whose tensors are cached when it is read
    NO_GRAD: (1, 1, 0),
    FORWARD: (1, 1, 1),
    LOSS: (1, 1, 1),
    BACKWARD: (1, 2, 1),  # activations are gone, but cached; a gradient each
    STEP: (1, 2 + _STATES, 0),
    ZERO_GRAD: (1, 2 + _STATES, 0),  # gradients are gone, but cached
}
"""By stage, how often x, P and A."""
_TOKEN_BYTES = 8


def form_of(stage: str) -> str:
    """In symbols: ``x + 2P + A``."""
    words = [
        symbol if count == 1 else f"{count}{symbol}"
        for count, symbol in zip(FORMS[stage], "xPA", strict=True)
        if count
    ]
    return " + ".join(words) or "0"


def value_of(stage: str, input_bytes: int, parameter_bytes: int, activation_bytes: int | None) -> int | None:
    """In bytes; None where it needs activations and nobody counted them."""
    inputs, parameters, activations = FORMS[stage]
    if activations and activation_bytes is None:
        return None
    return inputs * input_bytes + parameters * parameter_bytes + activations * (activation_bytes or 0)


def element_bytes(recipe: Recipe) -> int:
    """What a parameter takes."""
    return scheme_of(recipe["precision"]).weight


def input_bytes(facts: Facts, recipe: Recipe) -> int:
    """What the model is given: images of 4 bytes a channel, or tokens of 8 bytes."""
    if facts.vocabulary is not None:
        return recipe.number("batch") * recipe.number("seq") * _TOKEN_BYTES
    return recipe.number("batch") * facts.channels * recipe.number("image") ** 2 * 4
