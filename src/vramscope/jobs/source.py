"""Where a workload's model comes from, as people write it: ``timm/resnet50``, ``hf/llama?hidden_size=4096`` …"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vramscope.errors import SourceError

TIMM, TORCHVISION, HF, DIFFUSERS, FUNCTION = "timm", "torchvision", "hf", "diffusers", "function"
LIBRARIES = (TIMM, TORCHVISION, HF, DIFFUSERS)
FORMS = (
    "timm/NAME, torchvision/NAME, hf/REPO, hf/FOLDER, hf/TYPE?key=value&…, diffusers/CLASS or module:function"
)
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Source:
    """A model's library and name, with what was typed by hand about it."""

    library: str
    """timm, torchvision, hf, diffusers or function."""
    name: str
    """A model's name, a repository, a folder, a config's type, a class, or ``module:function``."""
    settings: tuple[tuple[str, str], ...] = ()
    """What stands behind the ``?``: keys and values as they were written."""

    @property
    def text(self) -> str:
        """As people write it; ``parse_source`` of it gives the source again."""
        tail = "?" + "&".join(f"{key}={value}" for key, value in self.settings) if self.settings else ""
        return self.name if self.library == FUNCTION else f"{self.library}/{self.name}{tail}"

    @property
    def short(self) -> str:
        """The last word of its name, for titles and file names."""
        return re.split(r"[/:]", self.name.rstrip("/"))[-1]

    @property
    def values(self) -> dict[str, Any]:
        """What stands behind the ``?``, as numbers, truths, lists and texts."""
        return {key: value_of(text) for key, text in self.settings}

    @property
    def folder(self) -> Path | None:
        """The local folder that it names, if it does."""
        path = Path(self.name).expanduser()
        return path if self.library in (HF, DIFFUSERS) and path.is_dir() else None


def parse_source(text: str) -> Source:
    """The source that a text names; SourceError for one that names none."""
    words, _, tail = text.strip().partition("?")
    library, slash, name = words.partition("/")
    if library in LIBRARIES and slash and name:
        return Source(library, name, _settings(tail, text))
    if _FUNCTION.fullmatch(text.strip()):
        return Source(FUNCTION, text.strip())
    raise SourceError(f"{text!r} names no model: write {FORMS}")


def value_of(text: str) -> Any:
    """A value as it is typed: 4096, 1e-5, true, None, a text; with commas (64,128) a list; or JSON."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "[{" and "," in text:
        return [value_of(part) for part in text.split(",") if part]
    try:
        return json.loads(text)
    except ValueError:
        return text


_WORDS = {"True": True, "False": False, "None": None}
"""As Python writes them; JSON's are read by itself."""


def _settings(tail: str, text: str) -> tuple[tuple[str, str], ...]:
    pairs = [pair.partition("=") for pair in tail.split("&") if pair]
    for key, equals, value in pairs:
        if not (key.isidentifier() and equals and value):
            raise SourceError(
                f"{text!r}: behind the ? stand key=value pairs with & between them, as hidden_size=4096"
            )
    return tuple((key, value) for key, _, value in pairs)
