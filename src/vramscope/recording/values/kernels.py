"""Replaces the CUDA kernel of an ATen operator by a function that still calls it.

So every allocation, temporary and error is the real kernel's own.  Only the replaced operators pay
(2 to 4 microseconds); calls from C++ and from the autograd threads are caught as well."""

from __future__ import annotations

import ctypes
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch

Call: TypeAlias = Callable[..., Any]
"""call(keyset, *args, **kwargs): the real kernel."""
Kernel: TypeAlias = Callable[..., Any]
"""kernel(keyset, *args, **kwargs): what takes its place."""

_libraries: dict[str, torch.library.Library] = {}
_native = ctypes.CDLL(None)
_prepared = threading.local()


def on_virtual_card() -> bool:
    """Whether this process runs on the stand-ins; elsewhere nothing is to be replaced."""
    return hasattr(_native, "vs_answer")


def replace(name: str, make: Callable[[Call], Kernel], namespace: str = "aten") -> bool:
    """Puts make(call) in the place of the CUDA kernel of `name` ("eq.Tensor"); False: this torch has none."""
    try:
        kernel = torch.library.get_kernel(f"{namespace}::{name}", "CUDA")
    except RuntimeError:
        return False
    library = _libraries.get(namespace)
    if library is None:
        library = _libraries[namespace] = torch.library.Library(namespace, "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch 2.9 warns of the very override that is asked for
        library.impl(name, make(kernel.call_boxed), "CUDA", with_keyset=True, allow_override=True)
    return True


def operator(name: str) -> Callable[..., Any]:
    """The operator of that name, to be called on host tensors; raises AttributeError if this torch has none."""
    packet, _, overload = name.partition(".")
    found: Callable[..., Any] = getattr(getattr(torch.ops.aten, packet), overload or "default")
    return found


def has_operator(name: str) -> bool:
    """Whether this torch has an operator of that name."""
    try:
        operator(name)
    except AttributeError:
        return False
    return True


def in_backward() -> bool:
    """Whether autograd is computing gradients.

    It adds one into another in place only while nobody else holds its storage, and merely asking a tensor
    for its storage makes a holder.  So numbers are left alone there, or there would be more allocations
    (InputBuffer::accumulate, torch/csrc/autograd/input_buffer.cpp)."""
    return bool(torch._C._current_graph_task_id() != -1)


@contextmanager
def answered(*values: int) -> Iterator[None]:
    """Within it this thread's next reads of at most 8 bytes from the card give `values`, in that order."""
    for value in values:
        _native.vs_answer(ctypes.c_int64(value))
    _prepared.depth = is_answered() + 1
    try:
        yield
    finally:
        _prepared.depth -= 1
        _native.vs_answers_left()


def is_answered() -> int:
    """Above 0 within `answered`: what is read comes from there."""
    depth: int = getattr(_prepared, "depth", 0)
    return depth
