"""Which tensors on the card have known contents.

Contents belong to the storage, so every view finds them and they go when it goes; they hold no memory of
the card.  They count while the tensor's version is the one they were noted at: every in-place operator
raises it, also those that vramscope doesn't know."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from vramscope.recording.values.contents import (
    FLOATS_LIMIT,
    Contents,
    Scalar,
    View,
    constant,
    laid_out,
    limit,
)
from vramscope.recording.values.kernels import in_backward


class _Noted:
    """Contents with the version of the tensor for which they are true.

    A kernel that writes in place runs before the version is raised, and when it was called by another
    kernel it isn't raised at all: until `settled` it may be one higher than `version`."""

    __slots__ = ("contents", "settled", "storage", "storage_bytes", "version")

    def __init__(self, storage: weakref.ref[torch.UntypedStorage], storage_bytes: int) -> None:
        self.storage = storage
        self.storage_bytes = storage_bytes

    def set(self, contents: Contents, version: int | None, settled: bool) -> None:
        """From now on these."""
        self.contents, self.version, self.settled = contents, version, settled


_noted: dict[int, _Noted] = {}
"""By the address where a storage begins; an entry goes with its storage.

Asking a tensor for its storage makes a Python object of that, which counts as one more holder and changes what
autograd does (kernels.in_backward).  So a storage is asked for once, when something of it is noted."""


def contents_of(tensor: Tensor) -> Contents | None:
    """What the storage of `tensor` holds, if that is known and of its type."""
    noted = _noted_of(tensor)
    if noted is None or not _is_valid(noted, tensor):
        return None
    return noted.contents if noted.contents.dtype is tensor.dtype else None


def view_of(tensor: Tensor) -> View | None:
    """The known values of `tensor`."""
    contents = contents_of(tensor)
    if contents is None:
        return None
    return View(contents, tensor.shape, tensor.stride(), tensor.storage_offset())


def values_of(tensor: Tensor) -> Tensor | None:
    """A host tensor with the values of `tensor`, if they are known; not to be written to."""
    view = view_of(tensor)
    if view is None:
        return None
    try:
        return view.tensor()
    except LookupError:
        return None


def note_constant(tensor: Tensor, value: Scalar, assumed: str = "", *, in_place: bool = False) -> None:
    """Every element of `tensor` is `value`; `in_place`: the tensor was there before."""
    dtype = tensor.dtype
    if dtype.is_floating_point and (tensor.numel() > FLOATS_LIMIT or in_backward()):
        forget(tensor)  # large numbers decide nothing, and gradients are left alone
        return
    contents = constant(value, dtype, assumed)
    if fills_storage(tensor):
        note_contents(tensor, contents, in_place=in_place)
    else:
        value = contents.value or 0
        _note_part(tensor, lambda: torch.scalar_tensor(value, dtype=dtype, device="cpu"), contents, in_place)


def note_values(
    tensor: Tensor, make: Callable[[], Tensor], assumed: str = "", *, depth: int = 0, in_place: bool = False
) -> None:
    """The values of `tensor` are what `make` returns: a host tensor that can be broadcast to its shape."""
    dtype, elements = tensor.dtype, tensor.numel()
    if elements > limit(dtype):
        forget(tensor)
        return
    if not fills_storage(tensor):
        _note_part(tensor, make, Contents(dtype, None, assumed, None, depth), in_place)
        return
    size, stride = tensor.shape, tensor.stride()

    def build() -> Tensor:
        return laid_out(make().to(dtype).expand(size), stride, elements)

    note_contents(tensor, Contents(dtype, None, assumed, build, depth + 1), in_place=in_place)


def note_contents(tensor: Tensor, contents: Contents, *, in_place: bool = False) -> None:
    """The storage of `tensor`, all of it, holds `contents`."""
    if tensor.is_floating_point() and in_backward():
        return
    noted = _noted_of(tensor) or _entry_for(tensor)
    noted.set(contents, None if tensor.is_inference() else tensor._version, not in_place)


def note_counted(tensor: Tensor, rule: Callable[[Any, Any], Scalar], step: int) -> bool:
    """The short way for `counter += 1`, a constant and a number in place; False: it is something else."""
    noted = _noted_of(tensor)
    if noted is None or not _is_valid(noted, tensor):
        return False
    contents, dtype = noted.contents, tensor.dtype
    whole = tensor.numel() * tensor.itemsize == noted.storage_bytes
    if contents.value is None or contents.dtype is not dtype or not whole or not tensor.is_contiguous():
        return False
    after = constant(rule(contents.value, step), dtype, contents.assumed)
    noted.set(after, None if tensor.is_inference() else tensor._version, False)
    return True


def forget(tensor: Tensor) -> None:
    """Nothing is known of the storage of `tensor` any more."""
    _noted.pop(_begin(tensor), None)


def fills_storage(tensor: Tensor) -> bool:
    """Whether `tensor` covers every element of its storage once."""
    elements = tensor.numel()
    if elements * tensor.itemsize != tensor.untyped_storage().nbytes():
        return False
    return tensor.is_contiguous() or _is_dense(tensor.shape, tensor.stride(), elements)


def _begin(tensor: Tensor) -> int:
    begin: int = tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize
    return begin


def _noted_of(tensor: Tensor) -> _Noted | None:
    """What is noted of the storage of `tensor`; what a storage that was resized held is forgotten."""
    begin = _begin(tensor)
    noted = _noted.get(begin)
    if noted is None:
        return None
    storage = noted.storage()
    if storage is None or storage.data_ptr() != begin or storage.nbytes() != noted.storage_bytes:
        del _noted[begin]
        return None
    return noted


def _entry_for(tensor: Tensor) -> _Noted:
    begin, storage = _begin(tensor), tensor.untyped_storage()

    def gone(mark: weakref.ref[torch.UntypedStorage]) -> None:
        noted = _noted.get(begin)
        if noted is not None and noted.storage is mark:
            del _noted[begin]

    entry = _noted[begin] = _Noted(weakref.ref(storage, gone), storage.nbytes())
    return entry


def _note_part(tensor: Tensor, make: Callable[[], Tensor], part: Contents, in_place: bool) -> None:
    """`tensor` is a part of its storage.  Around a new tensor lies nothing that anybody sees; written into an
    unknown one, the whole stays unknown."""
    old = contents_of(tensor) if in_place else constant(0, tensor.dtype)
    elements = tensor.untyped_storage().nbytes() // tensor.itemsize
    if old is None or elements > limit(tensor.dtype):
        forget(tensor)
        return
    size, stride, offset = tensor.shape, tensor.stride(), tensor.storage_offset()
    around = View(old, (elements,), (1,), 0)

    def build() -> Tensor:
        values = around.tensor().clone()
        values.as_strided(size, stride, offset).copy_(make())
        return values

    depth = max(part.depth, old.depth) + 1
    contents = Contents(tensor.dtype, None, part.assumed or old.assumed, build, depth)
    note_contents(tensor, contents, in_place=in_place)


def _is_valid(noted: _Noted, tensor: Tensor) -> bool:
    if noted.version is None or tensor.is_inference():
        return True
    version = tensor._version
    if version == noted.version:
        return True
    if version == 0 and not tensor.is_floating_point():
        # A view made within a kernel counts from 0, so its version says nothing.  Every usual operator that
        # writes integers in place is known to vramscope; of numbers only constants at rest are worth knowing.
        return True
    if noted.settled or version != noted.version + 1:
        return False
    noted.version, noted.settled = version, True
    return True


def _is_dense(size: Sequence[int], stride: Sequence[int], elements: int) -> bool:
    """Whether the strides are those of a permuted contiguous tensor."""
    expected = 1
    for step, length in sorted(zip(stride, size, strict=True)):
        if length != 1:
            if step != expected:
                return False
            expected *= length
    return expected == elements
