"""The libraries that a cell's result hangs on, by their installed versions; nothing is imported for it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata

from vramscope.errors import PlatformError, TorchError
from vramscope.virtual.wheel import find_wheel

_LIBRARIES = (
    *("timm", "torchvision", "transformers", "peft", "diffusers", "accelerate"),
    *("bitsandbytes", "torchao", "liger-kernel", "flash-attn", "triton"),
)
"""As they are called on PyPI."""


def versions_here() -> dict[str, str]:
    """By name, the versions of torch, its CUDA and cuDNN, and of the libraries that are installed.

    Where there is no torch that could run a cell there is no ``torch`` in it."""
    return {**_torch(), **installed(_LIBRARIES)}


def installed(names: Iterable[str]) -> dict[str, str]:
    """The versions of those that are installed, by their names on PyPI."""
    return {name: version for name in names if (version := _installed(name))}


def _torch() -> dict[str, str]:
    try:
        wheel = find_wheel()
    except (TorchError, PlatformError):
        return {}
    return {"torch": wheel.torch, "cuda": wheel.cuda, "cudnn": wheel.cudnn or "unknown"}


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
