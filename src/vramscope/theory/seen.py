"""What was seen of a model in one step: its parameters, its layers' tensors, what was really saved, operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor as layers pass it on."""

    storage: int
    """A number of its memory; equal for tensors that share it."""
    storage_bytes: int
    shape: tuple[int, ...]
    width: int
    """Bytes of an element."""
    floats: bool = True
    grad: bool = False
    """It has a gradient."""

    @property
    def elements(self) -> int:
        """Their number."""
        found = 1
        for side in self.shape:
            found *= side
        return found


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter; of a packed one the shape before packing."""

    name: str
    shape: tuple[int, ...]
    width: int
    trained: bool
    optimizer: str = ""
    """The knob's word for the optimizer that has it; "" is none."""
    packed: bool = False
    """In 4 bits."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One call of a module, or of a function of torch.nn.functional, whose formula is known."""

    path: str
    kind: str
    """Its class, or the function's name."""
    family: str
    """Which formula: linear, conv, batch_norm …"""
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    figures: Mapping[str, Any] = field(default_factory=dict)
    """kernel, groups, features …"""
    trains: bool = True
    """Its weight has a gradient; of one without a weight: its input has."""
    cast_width: int | None = None
    """Within autocast: bytes of an element of its type."""
    saves: bool = True
    """What it saves stays on the card; False: a checkpoint drops it, or something moves it to the host."""
    again: bool = False
    """It runs within a backward, a second time, for a checkpoint."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What was kept for backward by code of one class of modules; storages that are no parameter's."""

    kind: str
    storage: int
    size_bytes: int
    cast: bool = False
    """A half copy of a weight."""


@dataclass(frozen=True, slots=True)
class Seen:
    """All of it."""

    parameters: tuple[Parameter, ...]
    buffer_bytes: int
    """As their tensors have them, shared ones once."""
    layers: tuple[Layer, ...] = ()
    saved: tuple[Saved, ...] = ()
    """Each storage once, for the first that kept it."""
    batch: tuple[Tensor, ...] = ()
    """What the data are; two that share memory are both there."""
    batches: int = 1
    """Micro-batches of the step; layers, saved and batch are those of the first."""
    flops: int | None = None
    """As torch's counter has them, forward and backward of all micro-batches; None: it could not count."""
    convolution_flops: int = 0
    config: Mapping[str, int] = field(default_factory=dict)
    """layers, hidden, heads, kv_heads, head, window: of a transformer, as far as its config has them."""


def seen_from(value: Mapping[str, Any]) -> Seen:
    """What `dataclasses.asdict` made of one, by way of JSON."""
    return Seen(
        **{
            **value,
            "parameters": tuple(_made(Parameter, each) for each in value["parameters"]),
            "layers": tuple(_layer(each) for each in value["layers"]),
            "saved": tuple(Saved(**each) for each in value["saved"]),
            "batch": tuple(_made(Tensor, each) for each in value["batch"]),
        }
    )


def _layer(value: Mapping[str, Any]) -> Layer:
    tensors = {name: tuple(_made(Tensor, each) for each in value[name]) for name in ("inputs", "outputs")}
    return Layer(**{**value, **tensors})


def _made(kind: type[Any], value: Mapping[str, Any]) -> Any:
    known = {each.name for each in fields(kind)}
    return kind(
        **{key: tuple(item) if key == "shape" else item for key, item in value.items() if key in known}
    )
