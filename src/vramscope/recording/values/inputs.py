"""What is known of an operator's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from vramscope.recording.values.contents import View, constant, limit
from vramscope.recording.values.known import view_of
from vramscope.recording.values.settings import policy


class Inputs:
    """The arguments of a call, with a View in the place of each tensor on the card.

    An unknown truth value is taken as the policy says; any other unknown tensor makes `unknown` true."""

    __slots__ = ("args", "assumed", "depth", "unknown", "varied", "views")

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.unknown = False
        self.varied = False
        """not all of them are constants"""
        self.assumed = ""
        """the last assumption that they rest on"""
        self.depth = 0
        """how many computations that nobody has asked for yet lie behind them"""
        self.views: list[View] = []
        self.args = [self._known(arg) for arg in args]

    def all_constant(self) -> bool:
        """Whether each tensor on the card is known and holds one value."""
        return not self.unknown and not self.varied

    def too_large(self) -> bool:
        """Whether a constant is among them that is better not written out."""
        return any(view.numel() > limit(view.contents.dtype) for view in self.views)

    def first(self) -> View | None:
        """The first argument, if it is known."""
        return self.args[0] if self.args and isinstance(self.args[0], View) else None

    def on_host(self) -> tuple[Any, ...]:
        """The arguments with host tensors; LookupError where the values can't be had."""
        return tuple([_replaced(arg, View.tensor) for arg in self.args])

    def as_points(self) -> tuple[Any, ...]:
        """The arguments with one-element tensors for constants."""
        return tuple([_replaced(arg, View.point) for arg in self.args])

    def as_scalars(self) -> list[Any]:
        """The arguments with plain numbers for constants."""
        return [
            arg.contents.value if isinstance(arg, View) else arg.item() if isinstance(arg, Tensor) else arg
            for arg in self.args
        ]

    def _known(self, arg: Any) -> Any:
        if isinstance(arg, Tensor):
            if not arg.is_cuda:
                return arg.clone() if arg.dim() else arg
            return self._view(arg)
        if isinstance(arg, (list, tuple)) and any(isinstance(item, Tensor) for item in arg):
            return [self._known(item) for item in arg]
        return arg

    def _view(self, tensor: Tensor) -> View | None:
        view = view_of(tensor) or assumed_truth(tensor)
        if view is None:
            self.unknown = True
            return None
        self.views.append(view)
        contents = view.contents
        self.varied |= contents.value is None
        self.assumed = contents.assumed or self.assumed
        self.depth = max(self.depth, contents.depth)
        return view


def assumed_truth(tensor: Tensor) -> View | None:
    """What an unknown tensor of truth values is taken for; None for other types."""
    if tensor.dtype is not torch.bool:
        return None
    contents = constant(policy().bool, torch.bool, "bool")
    return View(contents, tensor.shape, tensor.stride(), tensor.storage_offset())


def _replaced(arg: Any, host: Callable[[View], Tensor]) -> Any:
    if isinstance(arg, View):
        return host(arg)
    if isinstance(arg, list):
        return [_replaced(item, host) for item in arg]
    return arg
