"""What so many parameters cost while they train: schemes beside optimizers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from vramscope.cards import Card
from vramscope.errors import UsageError
from vramscope.theory.adapters import qlora
from vramscope.theory.blocks import step_flops
from vramscope.theory.claims import CLAIMS, INT8_CONTEXT_BYTES, Claim
from vramscope.theory.formula import Formula
from vramscope.theory.loading import loading
from vramscope.theory.rates import BF16, FP16, FP32, TF32, rate, shortest_step
from vramscope.theory.schemes import SCHEMES, Scheme, scheme_of
from vramscope.theory.sharding import sharded
from vramscope.theory.states import STATES, States, states_of

MOST_PARAMETERS = 10**16


@dataclass(frozen=True, slots=True)
class Training:
    """A scheme with an optimizer, for all parameters; bytes."""

    scheme: str
    optimizer: str
    weight_bytes: int
    gradient_bytes: int
    """With a finer copy, where the scheme has one."""
    master_bytes: int
    state_bytes: int | None
    """None: it depends on the shapes."""
    cast_bytes: int
    """At most, within a step."""
    per_parameter: float | None
    """Bytes that last from step to step; None as above."""
    assumption: str
    source: str

    @property
    def lasting_bytes(self) -> int | None:
        """What stays from step to step."""
        if self.state_bytes is None:
            return None
        return self.weight_bytes + self.gradient_bytes + self.master_bytes + self.state_bytes

    @property
    def total_bytes(self) -> int | None:
        """With the copies of a step."""
        return None if self.lasting_bytes is None else self.lasting_bytes + self.cast_bytes


@dataclass(frozen=True, slots=True)
class Claimed:
    """An article's claim for all parameters, beside PyTorch's; bytes."""

    claim: Claim
    said_bytes: int
    pytorch_bytes: int
    cast_bytes: int
    beside_bytes: int = 0
    """What the claim adds whatever the number of parameters; it is in `said_bytes`."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """All that follows from a number of parameters."""

    parameters: int
    optimizer: str
    """The one of the parts, of sharding."""
    ranks: int
    weights: tuple[Formula, ...]
    """By type of an element."""
    parts: tuple[Training, ...]
    """The chosen optimizer under each scheme."""
    matrix: tuple[Training, ...]
    """Every optimizer under each scheme; empty where one was asked for."""
    claims: tuple[Claimed, ...]
    sharding: tuple[Formula, ...]
    loading: tuple[Formula, ...]
    step: tuple[Formula, ...] = ()
    """Operations, the card's rates and the shortest time, as far as tokens and a card were given."""
    card: str = ""
    """Its id; "" is none."""
    card_bytes: int | None = None
    """Its memory."""


def sheet(
    parameters: int,
    *,
    optimizer: str | None = None,
    precision: str | None = None,
    ranks: int = 8,
    tokens: int | None = None,
    card: Card | None = None,
) -> Sheet:
    """The sheet; UsageError for a number of parameters that cannot be, and for names that there are not."""
    if not 0 < parameters <= MOST_PARAMETERS:
        raise UsageError(f"{parameters} parameters cannot be: give a number as 11e9 or 124439808")
    states = states_of(optimizer or "adamw")
    schemes = SCHEMES if precision is None else (scheme_of(precision),)
    if tokens is not None and tokens < 1:
        raise UsageError(f"{tokens} tokens cannot be: at least one")
    first = schemes[0]
    matrix = () if optimizer else tuple(_rows(parameters, schemes, STATES))
    return Sheet(
        parameters,
        states.name,
        ranks,
        tuple(_weights(parameters)),
        tuple(_rows(parameters, schemes, (states,))),
        matrix,
        tuple(_claimed(parameters, claim) for claim in CLAIMS),
        sharded(parameters, ranks, first, states.per_parameter(first.state)),
        loading(parameters, first.weight),
        tuple(_step(parameters, tokens, card, precision)),
        card.id if card else "",
        card.memory_bytes if card else None,
    )


def _step(parameters: int, tokens: int | None, card: Card | None, precision: str | None) -> Iterator[Formula]:
    """Operations, rates, and in each type that the card has units for the shortest step."""
    work = step_flops(parameters, tokens) if tokens else None
    if work is not None:
        yield work
    for kind in _kinds(precision) if card else ():
        assert card is not None
        speed = rate(card, kind)
        if speed.values["flops_per_s"] is not None or precision:
            yield speed
            if work is not None:
                bound = shortest_step(card, kind, int(work.values["step_flops"] or 0))
                yield replace(bound, name=f"shortest step, {kind}")


def _kinds(precision: str | None) -> tuple[str, ...]:
    """The types of products that a precision computes in; several where nobody named one, or it has several."""
    if precision is None:
        return FP32, TF32, BF16, FP16
    kind = precision.removeprefix("amp-")
    return (kind,) if kind in (FP32, TF32, BF16, FP16) else (BF16, FP16)


def training(parameters: int, scheme: Scheme, states: States) -> Training:
    """A scheme with an optimizer."""
    each = states.per_parameter(scheme.state)
    return Training(
        scheme.name,
        states.name,
        parameters * scheme.weight,
        parameters * (scheme.gradient + scheme.master_gradient),
        parameters * scheme.master,
        None if each is None else round(parameters * each) + states.once,
        parameters * scheme.cast,
        None if each is None else scheme.lasting + each,
        f"{scheme.assumption} {states.assumption}",
        f"{scheme.source}; {states.source}",
    )


def _rows(parameters: int, schemes: tuple[Scheme, ...], optimizers: tuple[States, ...]) -> Iterator[Training]:
    for states in optimizers:
        yield from (training(parameters, scheme, states) for scheme in schemes)


def _weights(parameters: int) -> Iterator[Formula]:
    for name, width in (("fp32", 4), ("bf16, fp16", 2), ("int8", 1)):
        yield Formula(
            f"weights in {name}",
            f"{width}·P",
            {"weight_bytes": width * parameters},
            "Weights alone, as for inference; buffers, activations and the context come on top.",
            "torch.Tensor.element_size",
            {"parameters": parameters},
        )
    quantized = qlora(weights=parameters)
    yield Formula(
        "weights in NF4 (QLoRA)",
        quantized.expression,
        {"weight_bytes": quantized.values["weight_bytes"]},
        quantized.assumption,
        quantized.source,
        {"parameters": parameters},
    )


def _claimed(parameters: int, claim: Claim) -> Claimed:
    beside = INT8_CONTEXT_BYTES if claim.name == "int8" else 0
    return Claimed(
        claim,
        parameters * claim.per_parameter + beside,
        parameters * claim.pytorch,
        parameters * claim.casts,
        beside,
    )
