"""Which libraries techniques need, and how they are installed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from vramscope.errors import MissingLibraryError

if TYPE_CHECKING:
    from vramscope.jobs.recipe import Recipe
    from vramscope.jobs.technique import Technique

_COMMANDS = {
    "peft": "pip install 'vramscope[models]'",
    "accelerate": "pip install 'vramscope[models]'",
    "transformers": "pip install 'vramscope[models]'",
    "bitsandbytes": "pip install 'vramscope[quant]'",
    "torchao": "pip install 'vramscope[quant]'",
    "liger_kernel": "pip install liger-kernel",
    "flash_attn": "pip install flash-attn --no-build-isolation",
}


def command_for(package: str) -> str:
    """What installs a package that a technique needs."""
    return _COMMANDS.get(package, f"pip install {package}")


def missing(technique: Technique, position: str = "") -> MissingLibraryError | None:
    """The error for the first package that is not installed; nothing is imported to find out."""
    for package in technique.packages:
        if find_spec(package) is None:
            return MissingLibraryError(position or technique.name, package, command_for(package))
    return None


def missing_for(recipe: Recipe) -> MissingLibraryError | None:
    """The same for all techniques of a recipe."""
    return _first(
        missing(technique, f"{knob.name}={recipe[knob.name]}")
        for knob, technique, _ in recipe.techniques()
        if technique.packages
    )


def _first(errors: Iterable[MissingLibraryError | None]) -> MissingLibraryError | None:
    return next((error for error in errors if error is not None), None)
