"""From the layers that were seen to what they save: each layer's formula on its own tensors, equal memory once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vramscope.theory import layers as by_formula
from vramscope.theory.formula import ceil_to
from vramscope.theory.operations import ATTENTION, forward_flops
from vramscope.theory.seen import Layer, Parameter, Seen, Tensor

_STATISTIC = 4
"""Means and deviations are fp32."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A tensor that a layer's formula says is saved."""

    size_bytes: int
    storage: int | None = None
    """None: it is the layer's own, made for the backward."""


@dataclass(frozen=True, slots=True)
class Layerwise:
    """The layers of a kind: formula beside what was seen."""

    kind: str
    calls: int
    forward_flops: int
    saved_bytes: int
    """By formula; what an earlier layer has saved already is not counted again."""
    seen_bytes: int
    """What code of this kind really saved that nothing before had."""


def kept_by(layer: Layer) -> list[Kept]:
    """What a layer's formula says."""
    return [*_RULES[layer.family](layer)] if layer.trains and layer.saves else []


def activations(seen: Seen) -> tuple[int, tuple[Layerwise, ...]]:
    """The bytes that all layers save by formula, the data themselves left out, and the same by kind."""
    known = {each.storage for each in seen.batch}
    rows: dict[str, list[int]] = {}
    for layer in seen.layers:
        row = rows.setdefault(layer.kind, [0, 0, 0, 0])
        row[0] += 0 if layer.again else 1
        row[1] += forward_flops(layer)
        for kept in kept_by(layer):
            if kept.storage is None or kept.storage not in known:
                row[2] += kept.size_bytes
                known.add(kept.storage or 0)
    data = {each.storage for each in seen.batch}
    for saved in seen.saved:
        if not saved.cast and saved.storage not in data:
            rows.setdefault(saved.kind, [0, 0, 0, 0])[3] += saved.size_bytes
    found = tuple(Layerwise(kind, *row) for kind, row in rows.items())
    return sum(each.saved_bytes for each in found), found


def cast_bytes(seen: Seen) -> int:
    """Half copies of weights that autocast makes for products and convolutions, and that live on.

    Those of what trains are cached, each once; those of frozen weights are saved where the input has a gradient."""
    cached: dict[str, int] = {}
    saved = 0
    widths = {each.name: each for each in seen.parameters}
    for layer in seen.layers:
        weight = widths.get(f"{layer.path}.weight")
        if layer.cast_width is not None and layer.family in ("linear", "conv") and weight is not None:
            cached |= _casts(layer, weight, widths)
            saved += _saved_cast(layer, weight)
    return sum(cached.values()) + saved


def _saved_cast(layer: Layer, weight: Parameter) -> int:
    """Of a frozen weight, for the gradient of the input."""
    width = layer.cast_width or 0
    kept = layer.saves and layer.inputs and layer.inputs[0].grad and any(each.grad for each in layer.outputs)
    return math.prod(weight.shape) * width if kept and not weight.trained and weight.width > width else 0


def _casts(layer: Layer, weight: Parameter, by_name: Mapping[str, Parameter]) -> dict[str, int]:
    """Of a layer's weight and bias: only what trains and is finer is kept in the cache."""
    bias = by_name.get(f"{layer.path}.bias")
    return {
        each.name: math.prod(each.shape) * (layer.cast_width or 0)
        for each in (weight, bias)
        if each is not None and each.trained and each.width > (layer.cast_width or 0)
    }


def _whole(tensor: Tensor) -> Kept:
    return Kept(tensor.storage_bytes, tensor.storage)


def _in_width(tensor: Tensor, width: int | None) -> Kept:
    """As it is, or the copy that autocast makes of it."""
    if width is None or not tensor.floats or width == tensor.width:
        return _whole(tensor)
    return Kept(tensor.elements * width)


def _input(layer: Layer) -> Iterator[Kept]:
    yield _in_width(layer.inputs[0], layer.cast_width)


def _batch_norm(layer: Layer) -> Iterator[Kept]:
    source = layer.inputs[0]
    yield _whole(source)
    yield Kept(2 * _STATISTIC * source.shape[1])


def _layer_norm(layer: Layer) -> Iterator[Kept]:
    source = layer.inputs[0]
    yield _in_width(source, None if layer.cast_width is None else 4)
    yield Kept(2 * _STATISTIC * _rows(layer))


def _rms_norm(layer: Layer) -> Iterator[Kept]:
    yield _whole(layer.inputs[0])
    yield Kept(_STATISTIC * _rows(layer))


def _written_rms_norm(layer: Layer) -> Iterator[Kept]:
    """As transformers writes it: an fp32 input, its inverse root, and the normalized input."""
    source = layer.inputs[0]
    yield _in_width(source, 4)
    yield Kept(_STATISTIC * _rows(layer))
    yield Kept(source.elements * source.width)


def _rows(layer: Layer) -> int:
    weight: Sequence[int] = layer.figures.get("weight", ())
    return layer.inputs[0].elements // max(math.prod(weight), 1)


def _attention(layer: Layer) -> Iterator[Kept]:
    query, key, value = layer.inputs[:3]
    wide = layer.cast_width is not None
    width = layer.cast_width if wide and layer.cast_width else query.width
    for each in (query, key, value):
        yield _in_width(each, layer.cast_width if wide else None)
    for mask in layer.inputs[3:]:
        yield _whole(mask) if mask.floats else Kept(mask.elements * width)
    yield Kept(query.elements // query.shape[-1] * value.shape[-1] * width, layer.outputs[0].storage)
    batch, heads, seq = query.shape[0], query.shape[1], query.shape[2]
    yield Kept(4 * batch * heads * seq if width < 4 else by_formula.efficient_row_bytes(batch, heads, seq))


def _cross_entropy(layer: Layer) -> Iterator[Kept]:
    logits = layer.inputs[0]
    yield Kept(logits.elements * (4 if layer.cast_width is not None else logits.width))
    if layer.cast_width is not None and logits.width < 4:
        yield _whole(logits)
    if len(layer.inputs) > 1:
        yield _whole(layer.inputs[1])


def _bending(layer: Layer) -> Iterator[Kept]:
    """Its input; in place of which, where the result takes it, a copy."""
    source = layer.inputs[0]
    in_place = source.storage == layer.outputs[0].storage
    yield Kept(source.elements * source.width) if in_place else _whole(source)


def _max_pool(layer: Layer) -> Iterator[Kept]:
    yield _whole(layer.inputs[0])
    yield Kept(8 * layer.outputs[0].elements)


_RULES: Mapping[str, Callable[[Layer], Iterator[Kept]]] = {
    "linear": _input,
    "conv": _input,
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "written_rms_norm": _written_rms_norm,
    "embedding": lambda layer: iter([_whole(layer.inputs[0])]),
    "max_pool": _max_pool,
    "dropout": lambda layer: iter([Kept(layer.inputs[0].elements)]),
    "squashing": lambda layer: iter([_whole(layer.outputs[0])]),
    "bending": _bending,
    ATTENTION: _attention,
    "cross_entropy": _cross_entropy,
}


def rounded(size: int) -> int:
    """As the allocator gives it out: the next multiple of 512."""
    return ceil_to(size, 512)
