"""What a storage on the card holds, kept on the host: one value everywhere, or a copy of every element.

A copy is computed when somebody asks for it: an attention mask of a million elements that only feeds a
kernel costs a closure.  Contents never change, so a copy may be computed late, and be shared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import torch
from torch import Tensor

Scalar: TypeAlias = bool | int | float

ELEMENTS_LIMIT: Final = 1 << 20
"""Integers and truth values are copied up to this many elements (8 MiB of int64)."""
FLOATS_LIMIT: Final = 1 << 12
"""Floating point numbers decide sizes rarely, and only in small tensors: schedules, counts, scales."""
_DEEPEST: Final = 32
"""A counter that nobody reads must not grow a chain of closures without end."""


class Contents:
    """`value` everywhere, or else `elements` values that `row()` returns; `assumed` is the policy's key if an
    assumption went into them, else ''."""

    __slots__ = ("_make", "_row", "assumed", "depth", "dtype", "value")

    def __init__(
        self,
        dtype: torch.dtype,
        value: Scalar | None,
        assumed: str = "",
        make: Callable[[], Tensor] | None = None,
        depth: int = 0,
    ) -> None:
        self.dtype = dtype
        self.value = value
        self.assumed = assumed
        self.depth = depth
        self._make = make
        self._row: Tensor | None = None
        if depth > _DEEPEST:
            self.row()

    def row(self) -> Tensor | None:
        """The elements in one dimension; None for a constant and for what the CPU can't compute."""
        make = self._make
        if make is not None:
            self._make, self.depth = None, 0
            try:
                self._row = make()
            except Exception:  # the CPU lacks the operator, or an assumed index is out of range: unknown
                self._row = None
        return self._row


def constant(value: Scalar, dtype: torch.dtype, assumed: str = "") -> Contents:
    """The same value in every element, as `dtype` would hold it."""
    if dtype is torch.bool:
        value = bool(value)
    elif dtype.is_floating_point:
        value = float(value)
    else:
        value = int(value) & 0xFF if dtype is torch.uint8 else int(value)
    return Contents(dtype, value, assumed)


def limit(dtype: torch.dtype) -> int:
    """How many elements of `dtype` are worth a copy."""
    return FLOATS_LIMIT if dtype.is_floating_point else 0 if dtype.is_complex else ELEMENTS_LIMIT


class View:
    """A tensor's window on its storage's contents."""

    __slots__ = ("contents", "offset", "size", "stride")

    def __init__(self, contents: Contents, size: Sequence[int], stride: Sequence[int], offset: int) -> None:
        self.contents = contents
        self.size = size
        self.stride = stride
        self.offset = offset

    def tensor(self) -> Tensor:
        """The values on the host, in the tensor's shape; raises LookupError where they can't be had."""
        contents = self.contents
        if contents.value is not None:
            return torch.scalar_tensor(contents.value, dtype=contents.dtype, device="cpu").expand(self.size)
        values = contents.row()
        if values is None:
            raise LookupError
        return values.as_strided(self.size, self.stride, self.offset)

    def numel(self) -> int:
        """How many elements the tensor has."""
        return math.prod(self.size)

    def point(self) -> Tensor:
        """A constant as a tensor of one element with as many dimensions."""
        assert self.contents.value is not None
        point = torch.scalar_tensor(self.contents.value, dtype=self.contents.dtype, device="cpu")
        return point.expand((1,) * len(self.size))


def laid_out(values: Tensor, stride: Sequence[int], elements: int) -> Tensor:
    """`values` as the row of a storage of as many elements, in which they lie with `stride`."""
    if values.numel() == elements and values.stride() == tuple(stride):
        return values.as_strided((elements,), (1,))
    flat = values.new_zeros(elements)
    flat.as_strided(values.shape, tuple(stride)).copy_(values)
    return flat
