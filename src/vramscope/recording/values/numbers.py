"""Python numbers where an operator's schema wants a tensor.

`x * 2` reaches a kernel as a tensor that is marked as a wrapped number; on its way through Python it becomes a
plain number, which the kernel won't take back.  A host scalar of the result's type stands in for it: with
that type the promotion rules give the same result (torch.result_type)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from vramscope.recording.values import kernels

_CACHE_SIZE = 4096
_NUMBERS = (int, float, bool, complex)
_cache: dict[tuple[Any, ...], Tensor] = {}


def tensor_places(name: str) -> tuple[int, ...]:
    """The positions of the arguments that the schema of the operator wants as tensors."""
    schema = kernels.operator(name)._schema  # type: ignore[attr-defined]
    return tuple(place for place, arg in enumerate(schema.arguments) if str(arg.type) == "Tensor")


def with_tensors(args: Any, places: Sequence[int]) -> Any:
    """The arguments with a host scalar for each number at one of `places`."""
    for place in places:
        if place < len(args) and type(args[place]) in _NUMBERS:
            return _wrapped(args, places)
    return args


def _wrapped(args: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
    found = list(args)
    last = [args[place] for place in places if place < len(args)][-2:]
    for place in places:
        if place < len(args) and type(args[place]) in _NUMBERS:
            found[place] = _scalar(args[place], last[0] if last[0] is not args[place] else last[-1])
    return tuple(found)


def _scalar(value: Any, beside: Any) -> Tensor:
    """A host scalar for a number that is combined with `beside`, a tensor or another number."""
    kind = (beside.dtype, beside.dim() == 0) if isinstance(beside, Tensor) else type(beside)
    key = (type(value), value, kind, torch.get_default_dtype())
    scalar = _cache.get(key)
    if scalar is None:
        if len(_cache) >= _CACHE_SIZE:
            _cache.clear()
        dtype = torch.result_type(beside, value)
        scalar = _cache[key] = torch.tensor(value, device="cpu").to(dtype)
    return scalar
