"""A model that was made without memory, with what its library says about it."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from vramscope.errors import MissingLibraryError, SourceError
from vramscope.jobs.facts import Facts
from vramscope.jobs.source import Source

_COMMANDS = {
    "timm": "pip install 'vramscope[models]'",
    "transformers": "pip install 'vramscope[models]'",
    "huggingface_hub": "pip install 'vramscope[models]'",
}
"""For other libraries: pip install and their name."""


@dataclass(frozen=True, slots=True)
class Paper:
    """The module, on the meta device where it can be, and what is known of it beyond its structure."""

    module: Any
    facts: Facts


def library(name: str, source: Source) -> Any:
    """An imported library; MissingLibraryError with the command that installs it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise SourceError(f"{source.text}: {name} cannot be imported: {error}") from error
        raise MissingLibraryError(source.text, name, _COMMANDS.get(name, f"pip install {name}")) from error
    except ImportError as error:
        raise SourceError(f"{source.text}: {name} cannot be imported: {error}") from error


def made(source: Source, make: Callable[[], Any]) -> Any:
    """What `make` makes on the meta device; a library that refuses is a SourceError with its words."""
    import torch

    try:
        with torch.device("meta"):
            return make()
    except Exception as error:
        raise SourceError(f"{source.text} cannot be built: {first_line(error)}") from error


def check_keys(source: Source, known: Iterable[str], what: str) -> None:
    """SourceError with the nearest keys if one behind the ``?`` is none of the known ones."""
    names = sorted(known)
    for key, _ in source.settings:
        if key not in names:
            raise SourceError(f"{source.text}: {what} has no {key}{did_you_mean(key, names)}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean …?`` with the nearest words, or nothing."""
    near = difflib.get_close_matches(word, list(known), 3, 0.5)
    return f"; did you mean {', '.join(near)}?" if near else ""


def first_line(error: BaseException) -> str:
    """What an error says, in a line: its first two, where the first one only announces the second."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return f"{lines[0]} {lines[1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
