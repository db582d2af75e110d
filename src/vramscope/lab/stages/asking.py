"""What is asked for: a model, a size and a card, with the article's where nothing is said."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from vramscope.jobs.facts import CLASSIFICATION, Facts
from vramscope.jobs.recipe import recipe_of
from vramscope.jobs.source import TIMM, Source, parse_source
from vramscope.jobs.work import Work
from vramscope.jobs.write import settled
from vramscope.lab.article import BATCH, CARD, CLASSES

MODELS = ("resnet18", "resnet50", "resnet101")
TINY = {"batch": "1", "image": "64", "seq": "16"}
"""Sizes at which there are next to no activations."""
_PLAIN = re.compile(r"[\w.\-]+(\?.*)?")


@dataclass(frozen=True, slots=True)
class Asked:
    """One measurement."""

    source: Source
    shapes: tuple[tuple[str, str], ...] = ()
    """Knobs of the data that were turned by hand: batch, image, seq."""
    tiny: bool = False
    """The article's variant without activations."""
    card: str = CARD
    memory_bytes: int | None = None
    """Instead of the card's own."""
    measures: bool = True
    """It is also run on this machine's own card, if it has one."""


def source_named(text: str) -> Source:
    """The source of a text; a plain name is timm's, and timm's models get the article's classes.

    SourceError for a text that names none."""
    plain = _PLAIN.fullmatch(text.strip())
    source = parse_source(f"{TIMM}/{text.strip()}" if plain else text)
    if source.library != TIMM or "num_classes" in dict(source.settings):
        return source
    return replace(source, settings=(*source.settings, ("num_classes", str(CLASSES))))


def work_of(asked: Asked, facts: Facts) -> Work:
    """The workload; RecipeError for shapes that cannot be."""
    shapes = dict(asked.shapes)
    text = facts.vocabulary is not None
    usual = {name: size for name, size in TINY.items() if name != ("image" if text else "seq")}
    if not asked.tiny:
        usual = {"batch": str(BATCH)} if facts.tasks[0] == CLASSIFICATION else {}
    return settled(asked.source, recipe_of({**usual, **shapes}), facts)
