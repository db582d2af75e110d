"""Paths as a report shows them: relative to the program's folder, packages by their own name.

What is saved or sent on then tells nothing about the machine that it was made on."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from vramscope.run.journal import Journal

_PACKAGES = re.compile(r"(?:/[^\s:\"']+)?/(?:site|dist)-packages/")


def without_folders(journal: Journal, folder: str) -> Journal:
    """The journal with every path in it made shorter; columns of events are long, and hold none."""
    entries = tuple(
        entry if entry["kind"] == "events" else _mapped(entry, lambda words: shorter_paths(words, folder))
        for entry in journal.entries
    )
    return dataclasses.replace(journal, entries=entries)


def shorter_paths(words: str, folder: str) -> str:
    """A text without `folder/` and `.../site-packages/` wherever they stand in it."""
    prefix = folder.rstrip("/") + "/"
    return _PACKAGES.sub("", words.replace(prefix, "") if prefix != "/" else words)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    return value
