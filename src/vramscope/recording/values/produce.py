"""Where values on the card come from: fills, copies from the host, ranges and random integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from vramscope.recording.values import kernels, notes
from vramscope.recording.values.contents import FLOATS_LIMIT, limit
from vramscope.recording.values.inputs import assumed_truth
from vramscope.recording.values.known import (
    fills_storage,
    forget,
    note_constant,
    note_contents,
    note_values,
    values_of,
    view_of,
)
from vramscope.recording.values.settings import policy
from vramscope.recording.values.waiting import progress

_FACTORIES_OUT = ("arange.start_out", "eye.out", "eye.m_out", "linspace.out")
_FACTORIES = ("tril_indices", "triu_indices")
_FILLED_FIRST = (
    *("nll_loss2d_forward", "max_unpool2d", "max_unpool3d", "histc", "_ctc_loss", "_ctc_loss.Tensor"),
    *("multilabel_margin_loss_forward", "_foreach_norm.Scalar"),
)
"""Their kernels fill the result with zeros and then write to it where nobody sees it.  Found by running the
operators of torch.testing's op_db on unknown numbers and looking which results were known."""
_seeds = itertools.count(1)


def install() -> None:
    """Replaces the kernels of everything that puts values on the card or takes them off in bulk."""
    kernels.replace("fill_.Scalar", _fill)
    kernels.replace("fill_.Tensor", _fill_from_tensor)
    kernels.replace("copy_", _copy)
    for name in _FACTORIES_OUT:
        kernels.replace(name, _factory_out(name))
    for name in _FACTORIES:
        kernels.replace(name, _factory(name))
    for name in _FILLED_FIRST:
        kernels.replace(name, _unknown)
    _install_random()


def _unknown(call: kernels.Call) -> kernels.Kernel:
    def unknown(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        out = call(keyset, *args, **kwargs)
        for result in (out,) if isinstance(out, Tensor) else out:
            forget(result)
        return out

    return unknown


def _fill(call: kernels.Call) -> kernels.Kernel:
    def fill(keyset: Any, this: Tensor, value: Any) -> Any:
        if isinstance(value, complex) or this.is_complex():
            forget(this)
        elif not this.is_floating_point() or not kernels.in_backward():
            note_constant(this, value, in_place=True)
        return call(keyset, this, value)

    return fill


def _fill_from_tensor(call: kernels.Call) -> kernels.Kernel:
    def fill(keyset: Any, this: Tensor, value: Tensor) -> Any:
        if this.is_floating_point() and kernels.in_backward():
            return call(keyset, this, value)
        known = values_of(value) if value.is_cuda else value
        if known is None or this.is_complex() or known.is_complex():
            forget(this)
        else:
            note_constant(this, known.item(), in_place=True)
        return call(keyset, this, value)

    return fill


def _copy(call: kernels.Call) -> kernels.Kernel:
    def copy(keyset: Any, this: Tensor, source: Tensor, *rest: Any) -> Any:
        out = call(keyset, this, source, *rest)
        if not this.is_cuda:
            _take_off(this, source)
        elif source.is_cuda:
            _copy_across(this, source)
        else:
            progress(source.numel())
            _copy_in(this, source)
        return out

    return copy


def _copy_in(this: Tensor, source: Tensor) -> None:
    """From the host: kept if small.  A copy is made at once, the program may write to the source."""
    if this.numel() > limit(this.dtype):
        forget(this)
        return
    if source.numel() == 1:
        note_constant(this, source.item(), in_place=True)
        return
    values = source.detach().to(this.dtype, copy=True)
    note_values(this, lambda: values, in_place=True)


def _copy_across(this: Tensor, source: Tensor) -> None:
    if this.is_floating_point() and (this.numel() > FLOATS_LIMIT or kernels.in_backward()):
        return
    view = view_of(source) or (assumed_truth(this) if not source.is_complex() else None)
    if view is None or this.is_complex():
        forget(this)
    elif view.contents.value is not None:
        note_constant(this, view.contents.value, view.contents.assumed, in_place=True)
    elif (
        this.dtype == source.dtype
        and fills_storage(this)
        and this.stride() == source.stride()
        and (fills_storage(source))
    ):
        note_contents(this, view.contents, in_place=True)
    else:
        note_values(this, view.tensor, view.contents.assumed, depth=view.contents.depth, in_place=True)


def _take_off(this: Tensor, source: Tensor) -> None:
    """To the host: the known values, else what the policy says of small tensors."""
    view = view_of(source)
    if view is not None:
        try:
            this.copy_(view.tensor())
        except LookupError:
            return
        if view.contents.assumed:
            notes.assume(view.contents.assumed, f"decides {_values(this)} copied to the host")
        return
    if this.numel() > FLOATS_LIMIT or this.is_complex() or not this.numel():
        return
    _take_assumed(this)


def _take_assumed(this: Tensor) -> None:
    # What the program copied to the card just before reads back by itself and isn't to be overwritten.
    if bool(this.any()):
        return
    kind = "float" if this.is_floating_point() else "bool" if this.dtype == torch.bool else "int"
    value = getattr(policy(), kind)
    if value:
        this.fill_(value)
    notes.assume(kind, f"{_values(this)} copied to the host: {value}")


def _values(this: Tensor) -> str:
    return "one value" if this.numel() == 1 else f"{this.numel():,} values"


def _factory_out(name: str) -> Any:
    on_host = kernels.operator(name.replace("_out", "").replace(".out", ""))

    def make(call: kernels.Call) -> kernels.Kernel:
        def factory(keyset: Any, *args: Any, out: Tensor) -> Any:
            result = call(keyset, *args, out=out)
            if out.is_cuda and out.numel() <= limit(out.dtype):
                dtype = out.dtype
                note_values(out, lambda: on_host(*args, dtype=dtype, device="cpu"), in_place=True)
            else:
                forget(out)
            return result

        return factory

    return make


def _factory(name: str) -> Any:
    on_host = kernels.operator(name)

    def make(call: kernels.Call) -> kernels.Kernel:
        def factory(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            out = call(keyset, *args, **kwargs)
            dtype = out.dtype
            note_values(out, lambda: on_host(*args, dtype=dtype, device="cpu"))
            return out

        return factory

    return make


def _install_random() -> None:
    for name in ("random_", "random_.from", "random_.to"):
        kernels.replace(name, _random(name))
    kernels.replace("randperm.generator_out", _permutation)


def _random(name: str) -> Any:
    on_host = kernels.operator(name)

    def make(call: kernels.Call) -> kernels.Kernel:
        def draw(keyset: Any, this: Tensor, *args: Any, **kwargs: Any) -> Any:
            out = call(keyset, this, *args, **kwargs)
            if this.is_floating_point():
                forget(this)
                return out
            size, dtype, generator = tuple(this.shape), this.dtype, _next_generator()
            note_values(
                this,
                lambda: on_host(torch.empty(size, dtype=dtype, device="cpu"), *args, generator=generator()),
                in_place=True,
            )
            return out

        return draw

    return make


def _permutation(call: kernels.Call) -> kernels.Kernel:
    def permutation(keyset: Any, n: int, generator: Any = None, *, out: Tensor) -> Any:
        result = call(keyset, n, generator=generator, out=out)
        ours = _next_generator()
        note_values(out, lambda: torch.randperm(n, generator=ours(), device="cpu"), in_place=True)
        return result

    return permutation


def _next_generator() -> Callable[[], torch.Generator]:
    # The program's own generators are never touched; each draw has its own seed, as it may be made late.
    seed = next(_seeds)
    return lambda: torch.Generator().manual_seed(seed)
