"""The seed article's staged readings (article.toml): what it printed after each stage of one step of three ResNets."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CLASSES = 102
"""Of Flowers102, its data."""
BATCH, IMAGE = 90, 224
CARD = "rtx-3060"
"""Its card, as far as it can be told."""


@dataclass(frozen=True, slots=True)
class Table:
    """One model at one size."""

    model: str
    """timm's name."""
    batch: int
    image: int
    reserved_bytes: Mapping[str, int]
    """By stage, `torch.cuda.memory_reserved()`."""


@dataclass(frozen=True, slots=True)
class Article:
    """All its tables."""

    source: str
    """What they are from."""
    torch: str
    card: str
    """Both as far as they are known."""
    tables: tuple[Table, ...]

    def table(self, model: str, batch: int, image: int) -> Table | None:
        """The table of a model at a size; None: it has none."""
        wanted = (model, batch, image)
        return next((each for each in self.tables if (each.model, each.batch, each.image) == wanted), None)


@cache
def article() -> Article:
    """The figures, read once."""
    text = resources.files("vramscope.lab").joinpath("article.toml").read_text(encoding="utf-8")
    told = tomllib.loads(text)
    return Article(
        told["source"], told["torch"], told["card"], tuple(Table(**each) for each in told["table"])
    )
