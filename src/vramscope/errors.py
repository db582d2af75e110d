"""The exception tree.  Everything that vramscope raises on purpose is one of these.

VramscopeError                exit status 2
├── UsageError                wrong words on the command line or to the API
│   ├── UnknownCardError      no such card in the catalogue
│   ├── SizeError             a size that cannot be read
│   ├── SourceError           a model that there is not, or that cannot be had
│   ├── RecipeError           a technique that there is not, or that does not go with the model
│   └── MissingLibraryError   what was asked for needs a library that is not installed
├── PlatformError             not Linux, or no memfd: the virtual card cannot be here
├── NoGpuError                no NVIDIA GPU to measure on
├── TorchError                the installed torch cannot be put on a virtual card
├── BuildError                the stand-ins cannot be compiled or kept
├── CardError                 a card's figures are missing or nonsense
└── RunError                  a saved run or journal cannot be read
"""

from __future__ import annotations

from collections.abc import Sequence


class VramscopeError(Exception):
    """Base of all; `exit_code` is what the command line ends with."""

    exit_code = 2


class UsageError(VramscopeError):
    """What was asked for makes no sense; the text says what would."""


class UnknownCardError(UsageError):
    """No card of that name; `nearest` holds the ids that come closest."""

    def __init__(self, name: str, nearest: Sequence[str]) -> None:
        self.name = name
        self.nearest = tuple(nearest)
        hint = f"; did you mean {', '.join(self.nearest)}?" if self.nearest else ""
        super().__init__(f"no card named {name!r}{hint} `vramscope gpus` lists all of them")


class SizeError(UsageError):
    """A text that is no size; `text` is what was given."""

    def __init__(self, text: str, why: str = "") -> None:
        self.text = text
        reason = f": {why}" if why else ""
        super().__init__(f"{text!r} is not a size{reason}; write 12GiB, 11.76GiB, 24GB or 800MiB")


class SourceError(UsageError):
    """A workload's model does not exist, or cannot be had: the text names the nearest ones or the way."""


class RecipeError(UsageError):
    """A knob or technique does not exist, or does not go with the model or another one."""


class MissingLibraryError(UsageError):
    """A library is not installed; `command` is what installs it."""

    def __init__(self, what: str, library: str, command: str) -> None:
        self.library = library
        self.command = command
        super().__init__(f"{what} needs {library}, which is not installed: {command}")


class PlatformError(VramscopeError):
    """The system is one on which no virtual card can be made."""


class NoGpuError(VramscopeError):
    """This machine has no NVIDIA GPU, or its driver does not answer."""


class TorchError(VramscopeError):
    """The installed torch is missing, has no CUDA, is too old or is of another CUDA than supported."""


class BuildError(VramscopeError):
    """The stand-ins could not be compiled, or not be kept in the cache."""


class CardError(VramscopeError):
    """A card's description lacks a figure or holds one that cannot be."""


class RunError(VramscopeError):
    """A saved run, report or journal cannot be read."""
