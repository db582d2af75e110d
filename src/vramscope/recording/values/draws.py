"""What stands for results that depend on unknown numbers.

Indices that a program draws (argmax, topk, multinomial: next tokens, experts) are balanced and the same in
every run: each choice is taken equally often, one row's are distinct, and in a vocabulary the first and
last tokens are never drawn, where the special ones live."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor

from vramscope.recording.values import arithmetic, kernels
from vramscope.recording.values.contents import FLOATS_LIMIT
from vramscope.recording.values.known import note_constant, note_values
from vramscope.recording.values.propagate import Guess
from vramscope.recording.values.settings import policy

FEW: Final = 64
"""Up to so many choices are classes or experts, all of which are drawn; beyond, it is a vocabulary."""
FEW_AT_ONCE: Final = 1024
"""The same for topk, which routes to up to some hundreds of experts."""
_drawn = itertools.count()


def guesses() -> dict[str, Guess]:
    """What each operator gives for unknown inputs."""
    table: dict[str, Guess] = {}
    for comparison in ("eq", "ne", "lt", "le", "gt", "ge"):
        table[f"{comparison}.Tensor"] = table[f"{comparison}.Scalar"] = _comparison(comparison)
    table |= dict.fromkeys(("isnan", "isposinf", "isneginf"), _finite)
    table |= dict.fromkeys(("all", "all.dim", "all.dims", "any", "any.dim", "any.dims"), _truth)
    table |= dict.fromkeys(("logical_and", "logical_or", "logical_xor"), _truth)
    table |= dict.fromkeys(("isin.Tensor_Tensor", "isin.Tensor_Scalar", "isin.Scalar_Tensor"), _truth)
    table |= dict.fromkeys(("argmax", "argmin"), _arg)
    table |= dict.fromkeys(("max.dim", "min.dim", "median.dim", "mode", "kthvalue"), _value_and_index)
    return table | {"topk": _topk, "sort.stable": _sort}


def install() -> None:
    """Replaces the kernels of random choices; the rest comes by way of propagate."""
    kernels.replace("multinomial", _multinomial)


def choices(rows: int, count: int, among: int, few: int, start: int) -> Tensor:
    """`rows` x `count` indices below `among`: distinct in a row if there are enough, balanced over all."""
    low, high = (0, among) if among <= few else (among // 8, among - among // 8)
    flat = torch.arange(rows * count, device="cpu").view(rows, count)
    if among > few:
        flat += start * rows * count
    return low + flat % max(high - low, 1)


def routed(rows: int, count: int, among: int, share: float) -> Tensor:
    """As `choices` of few, but the first choice gets `share` times what would be fair."""
    hot = min(rows, round(rows * count / among * share))
    others = 1 + torch.arange(rows * count, device="cpu").view(rows, count) % max(among - 1, 1)
    others[:hot, 0] = 0
    return others


def _comparison(name: str) -> Guess:
    def guess(outs: Sequence[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        this, other = args[0], args[1]
        if this is other and name in ("eq", "ne"):  # how isfinite and others ask for NaN
            note_constant(outs[0], (name == "eq") == policy().finite, "finite")
        elif isinstance(other, float) and math.isinf(other):
            note_constant(
                outs[0], (name in ("ne", "lt", "le") if other > 0 else name in ("ne", "gt", "ge")), "finite"
            )
        elif this.dim() == 0 and this.is_floating_point() and isinstance(other, (int, float)):
            # One number is a number, the one that .item() would give; many are a mask.
            note_constant(outs[0], arithmetic.RULES[name](policy().float, other), "float")
        else:
            note_part(outs[0], policy().compare, "compare")

    return guess


def note_part(out: Tensor, part: float, what: str) -> None:
    """The mask `out` is true in `part` of its elements, evenly spread."""
    if part in (0, 1):
        note_constant(out, bool(part), what)
        return
    size, elements = tuple(out.shape), out.numel()

    def spread() -> Tensor:
        steps = torch.floor(torch.arange(elements + 1, dtype=torch.float64, device="cpu") * part)
        return (steps[1:] > steps[:-1]).view(size)

    note_values(out, spread, what)


def _finite(outs: Sequence[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    note_constant(outs[0], not policy().finite, "finite")


def _truth(outs: Sequence[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    note_constant(outs[0], policy().bool, "bool")


def _arg(outs: Sequence[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    _note_index(outs[0], args[0], args[1] if len(args) > 1 else None)


def _value_and_index(outs: Sequence[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    dims = [arg for arg in args[1:] if isinstance(arg, int) and not isinstance(arg, bool)]
    _note_number(outs[0])
    _note_index(outs[1], args[0], dims[-1] if dims else -1)


def _note_index(out: Tensor, this: Tensor, dim: int | None) -> None:
    among = this.numel() if dim is None else this.shape[dim] if this.dim() else 1
    rows, size, start = out.numel(), tuple(out.shape), next(_drawn)
    note_values(out, lambda: choices(rows, 1, among, FEW, start).view(size), "choice")


def _topk(outs: Sequence[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    values, indices = outs
    _note_number(values)
    this, count, dim = args[0], args[1], args[2] if len(args) > 2 else -1
    if not this.dim() or not indices.numel():
        return
    among, rows, start, share = this.shape[dim], indices.numel() // count, next(_drawn), policy().routing
    size = (*indices.movedim(dim, -1).shape,)

    def drawn() -> Tensor:
        if share > 1 and count < among <= FEW_AT_ONCE:
            return routed(rows, count, among, share).view(size).movedim(-1, dim)
        return choices(rows, count, among, FEW_AT_ONCE, start).view(size).movedim(-1, dim)

    note_values(indices, drawn, "choice")


def _sort(outs: Sequence[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    values, indices = outs
    _note_number(values)
    dim, size = kwargs.get("dim", -1), tuple(indices.shape)
    if not size:
        return

    def as_they_are() -> Tensor:
        return torch.arange(size[dim], device="cpu").expand(*_moved(size, dim)).movedim(-1, dim)

    note_values(indices, as_they_are, "choice")


def _moved(size: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """`size` with `dim` last."""
    rest = list(size)
    last = rest.pop(dim)
    return (*rest, last)


def _note_number(out: Tensor) -> None:
    """The value that comes with an index: what the policy says of a number, in small tensors."""
    if out.is_floating_point() and out.numel() <= FLOATS_LIMIT:
        note_constant(out, policy().float, "float")


def _multinomial(call: kernels.Call) -> kernels.Kernel:
    def multinomial(keyset: Any, this: Tensor, count: int, *args: Any, **kwargs: Any) -> Any:
        out = call(keyset, this, count, *args, **kwargs)
        among, rows, start = this.shape[-1], out.numel() // max(count, 1), next(_drawn)
        size = tuple(out.shape)
        note_values(out, lambda: choices(rows, count, among, FEW, start).view(size), "choice")
        return out

    return multinomial
