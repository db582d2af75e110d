"""The cards that come with the program (catalogue.toml), and finding one by any of its names."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from vramscope.cards.card import Card
from vramscope.errors import CardError, UnknownCardError
from vramscope.units import GIB

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_CATALOGUE = "catalogue.toml"
# What people write or leave out without meaning another card.
_FILLERS = frozenset(
    {"nvidia", "geforce", "tesla", "quadro", "gpu", "graphics", "card", "hbm3", "generation", "edition"}
)
_BRANDS = re.compile(r"(nvidia|geforce|tesla|quadro|titan|rtx)(.+)")
_SIZE = re.compile(r"\b(\d+) ?(?:gib|gb|g)\b")


def all_cards() -> tuple[Card, ...]:
    """Every card, in the order of the catalogue."""
    return _load()


def find_card(name: str) -> Card:
    """The card of that id, alias or CUDA name, however it is spelled.

    Case, spaces and hyphens do not count, nor do ``NVIDIA``, ``GeForce`` and the like; a size
    behind the name is heeded (``RTX 3060 12GB``).  Where a name fits several cards (``A100``), an
    alias in the catalogue says which one it means.  Raises UnknownCardError, which holds the ids
    that come closest.
    """
    card = _by_name().get(normalise(name)) or _of_size(name)
    if card is None:
        raise UnknownCardError(name, _nearest(name))
    return card


def normalise(name: str) -> str:
    """A card's name with everything removed that does not tell one card from another."""
    text = _SIZE.sub(r"\1gb", _plain(name))
    words = [word for word in _words(text) if word not in _FILLERS]
    # "RTX 3090" and "3090", "RTX PRO 6000" and "PRO 6000" are the same card.
    return "".join(words[1:] if len(words) > 1 and words[0] == "rtx" else words)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", name.lower()).strip()


def _words(text: str) -> Iterator[str]:
    """Words, with ``rtx3090`` taken apart as ``rtx-3090`` would be."""
    for word in text.split():
        glued = _BRANDS.fullmatch(word)
        if glued:
            yield glued[1]
            yield from _words(glued[2])
        else:
            yield word


def _of_size(name: str) -> Card | None:
    """The card that is named without its size, if it has about that size.

    A card reports up to 9 % less than it is sold with (ECC, firmware), or a little more where GB were meant.
    """
    text = _plain(name)
    size = _SIZE.search(text)
    if size is None:
        return None
    size_bytes = int(size[1]) * GIB
    card = _by_name().get(normalise(_SIZE.sub("", text)))
    fits = card is not None and 0.9 * size_bytes < card.memory_bytes < 1.02 * size_bytes
    return card if fits else None


@cache
def _by_name() -> Mapping[str, Card]:
    """Cards by normalised name; ids before aliases before CUDA names, which two cards may share."""
    names: dict[str, Card] = {}
    for card in _load():
        names.setdefault(normalise(card.id), card)
    for card in _load():
        for alias in card.aliases:
            names.setdefault(normalise(alias), card)
    for card in _load():
        names.setdefault(normalise(card.name), card)
    return names


def _nearest(name: str, count: int = 3) -> list[str]:
    """Up to three ids whose names look most like `name`."""
    names = _by_name()
    close = difflib.get_close_matches(normalise(name), names, n=3 * count, cutoff=0.5)
    return list(dict.fromkeys(names[match].id for match in close))[:count]


@cache
def _load() -> tuple[Card, ...]:
    text = resources.files("vramscope.cards").joinpath(_CATALOGUE).read_text(encoding="utf-8")
    return cards_from_toml(text)


def cards_from_toml(text: str) -> tuple[Card, ...]:
    """The cards that a catalogue's text describes.  Raises CardError for one that is not complete."""
    tables = tomllib.loads(text)
    capabilities = tables.get("capabilities", {})
    return tuple(_card(id_, table, capabilities) for id_, table in tables.get("cards", {}).items())


def _card(id_: str, table: Mapping[str, Any], capabilities: Mapping[str, Mapping[str, int]]) -> Card:
    try:
        figures: dict[str, Any] = {**_fields(table), **capabilities[table["capability"]]}
        return Card(id=id_, **figures)
    except (KeyError, TypeError, ValueError) as error:
        raise CardError(f"{_CATALOGUE}: {id_} lacks a figure or has one too many: {error}") from error


def _fields(table: Mapping[str, Any]) -> dict[str, Any]:
    """A card's own table with the types that Card has, clocks in kHz."""
    fields: dict[str, Any] = {"memory_low_bytes": None, **table}
    major, minor = table["capability"].split(".")
    fields["capability"] = int(major), int(minor)
    for clock in ("sm", "memory"):
        fields[f"{clock}_khz"] = 1000 * fields.pop(f"{clock}_mhz")
    fields["aliases"] = tuple(table.get("aliases", ()))
    fields["unverified"] = tuple(_in_khz(figure) for figure in table.get("unverified", ()))
    sources = fields.pop("source", {})
    fields["sources"] = tuple((_in_khz(figure), source) for figure, source in sources.items())
    return fields


def _in_khz(figure: str) -> str:
    """A figure's name as Card has it: the catalogue writes clocks in MHz."""
    return figure.removesuffix("_mhz") + "_khz" if figure.endswith("_mhz") else figure
