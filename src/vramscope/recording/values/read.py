"""Single values and sizes that the host reads from the card."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from vramscope.recording.values import checks, kernels, notes, places, redrawing
from vramscope.recording.values.contents import ELEMENTS_LIMIT, limit
from vramscope.recording.values.known import note_constant, note_values, values_of, view_of
from vramscope.recording.values.settings import policy
from vramscope.recording.values.waiting import assumed_read


def install() -> None:
    """Replaces the kernels of the operators that read from the card."""
    kernels.replace("_local_scalar_dense", _scalar)
    kernels.replace("equal", _equal)
    kernels.replace("_linalg_check_errors", _no_error)
    kernels.replace("nonzero", _nonzero)
    for name in ("_unique2", "unique_consecutive", "unique_dim", "unique_dim_consecutive"):
        kernels.replace(name, _unique(name))
    kernels.replace("bincount", _bincount)
    kernels.replace("repeat_interleave.Tensor", _repeat)


def _scalar(call: kernels.Call) -> kernels.Kernel:
    def scalar(keyset: Any, this: Tensor) -> Any:
        read = call(keyset, this)
        if kernels.is_answered():
            return read
        view = view_of(this)
        values = values_of(this) if view is not None else None
        if view is not None and values is not None:
            value = values.item()
            if view.contents.assumed:
                value = _as_checked(this, value)
                assumed_read(view.contents.assumed, value)
            return value
        kind = "float" if this.is_floating_point() else "bool" if this.dtype == torch.bool else "int"
        if this.is_complex() or (kind == "int" and read):  # an echo of what the program just copied in
            return read
        value = _as_checked(this, getattr(policy(), kind))
        assumed_read(kind, value)
        return value

    return scalar


def _as_checked(this: Tensor, value: Any) -> Any:
    """A truth value that rests on an assumption passes the check, or ends the loop, that it is read for."""
    if this.dtype is not torch.bool:
        return value
    asking = places.asking()
    passing = checks.passing(asking)
    if passing is None:
        passing = redrawing.leaving(asking)
    return value if passing is None else passing


def _equal(call: kernels.Call) -> kernels.Kernel:
    def equal(keyset: Any, this: Tensor, other: Tensor) -> Any:
        with kernels.answered(1):
            same = call(keyset, this, other)
        one, two = values_of(this), values_of(other)
        return torch.equal(one, two) if one is not None and two is not None else same

    return equal


def _no_error(call: kernels.Call) -> kernels.Kernel:
    """The solvers' own verdicts are values too: no matrix is singular."""

    def check(keyset: Any, info: Tensor, *args: Any, **kwargs: Any) -> Any:
        with kernels.answered(0):
            return call(keyset, info, *args, **kwargs)

    return check


def _nonzero(call: kernels.Call) -> kernels.Kernel:
    def nonzero(keyset: Any, this: Tensor) -> Any:
        taken, values, assumed = _count_nonzero(this)
        with kernels.answered(taken):
            out = call(keyset, this)
        if assumed:
            notes.assume(assumed, f"takes {_of(taken, this.numel())} rows")
        if out.shape[0] == taken and out.numel() <= limit(out.dtype):
            note_values(out, lambda: values().nonzero()[:taken], assumed)
        return out

    return nonzero


def _count_nonzero(this: Tensor) -> tuple[int, Callable[[], Tensor], str]:
    """How many elements count, a host tensor that says which, and the assumption behind it ('' if none)."""
    size = tuple(this.shape)
    view = view_of(this)
    if view is not None and view.contents.value is not None:
        taken = this.numel() if view.contents.value else 0
        return taken, lambda: torch.ones(size, dtype=torch.bool, device="cpu"), view.contents.assumed
    values = values_of(this)
    if view is not None and values is not None:
        return int(torch.count_nonzero(values)), lambda: values, view.contents.assumed
    taken = round(policy().nonzero * this.numel())
    return taken, lambda: torch.ones(size, dtype=torch.bool, device="cpu"), "nonzero"


def _unique(name: str) -> Any:
    on_host = kernels.operator(name)

    def make(call: kernels.Call) -> kernels.Kernel:
        def unique(keyset: Any, this: Tensor, *args: Any, **kwargs: Any) -> Any:
            dim = _dim_of_unique(name, args)
            values, view = values_of(this), view_of(this)
            if values is None or view is None or this.numel() > ELEMENTS_LIMIT:
                return _assumed_unique(call, dim, keyset, this, *args, **kwargs)
            found = on_host(values, *args, **kwargs)
            with kernels.answered(found[0].shape[dim or 0]):
                outs = call(keyset, this, *args, **kwargs)
            for out, result in zip(outs, found, strict=True):
                if out.shape == result.shape:
                    note_values(out, partial(_itself, result), view.contents.assumed)
            return outs

        return unique

    return make


def _itself(values: Tensor) -> Tensor:
    return values


def _assumed_unique(
    call: kernels.Call, dim: int | None, keyset: Any, this: Tensor, *args: Any, **kwargs: Any
) -> Any:
    total = this.numel() if dim is None else this.shape[dim]
    distinct = max(round(policy().unique * total), min(total, 1))
    with kernels.answered(distinct):
        outs = call(keyset, this, *args, **kwargs)
    notes.assume("unique", f"{_of(distinct, total)} are distinct")
    return outs


def _dim_of_unique(name: str, args: tuple[Any, ...]) -> int | None:
    """The dimension along which rows are compared; None: all elements."""
    if name.startswith("unique_dim"):
        return int(args[0])
    if name == "unique_consecutive" and len(args) > 2 and args[2] is not None:
        return int(args[2])
    return None


def _bincount(call: kernels.Call) -> kernels.Kernel:
    def bincount(keyset: Any, this: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Any:
        values = values_of(this)
        if values is not None and values.numel():
            low, high = int(values.min()), int(values.max())
        else:
            low, high = 0, max(policy().bins, minlength, 1) - 1
            if this.numel():
                notes.assume("bins", f"finds {high + 1:,} bins")
        with kernels.answered(low, high):
            out = call(keyset, this, weights, minlength)
        if values is not None and weights is None and out.numel() <= limit(out.dtype):
            note_values(out, lambda: torch.bincount(values, minlength=minlength))
        return out

    return bincount


def _repeat(call: kernels.Call) -> kernels.Kernel:
    def repeat(keyset: Any, repeats: Tensor, **kwargs: Any) -> Any:
        times = policy().repeat
        if view_of(repeats) is None:
            # The kernel adds them up with operators that find this again.
            note_constant(repeats, times, "repeat")
        return call(keyset, repeats, **kwargs)

    return repeat


def _of(part: int, whole: int) -> str:
    return f"all of {whole:,}" if part == whole else f"{part:,} of {whole:,}"
