"""Where a formula names a file and a symbol of an installed library, they are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from vramscope.theory.catalogue import BY_NAME, figures_of, formula_of
from vramscope.theory.schemes import SCHEMES
from vramscope.theory.states import STATES
from vramscope.theory.training import sheet

_FILE = re.compile(r"\b((?:torch|torchao|bitsandbytes|peft|transformers)/[\w/]+\.py)(?:: ([^;\[]+))?")


def sources() -> Iterator[str]:
    for each in (*SCHEMES, *STATES):
        yield each.source
    found = sheet(1000, tokens=1)
    for formula in (*found.weights, *found.sharding, *found.loading, *found.step):
        yield formula.source
    for name in BY_NAME:
        figures = ",".join(f"{key}=8" for key, value in figures_of(name).items() if value is None)
        yield formula_of(f"{name}:{figures}").source


def pinned() -> dict[str, set[str]]:
    """The symbols of each file."""
    found: dict[str, set[str]] = {}
    for source in sources():
        for path, symbols in _FILE.findall(source):
            words = re.findall(r"[A-Za-z_][\w.]*(?:\([\w.]+\))?", symbols)
            found.setdefault(path, set()).update(words)
    return found


def text_of(path: str) -> str:
    package, _, rest = path.partition("/")
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    return (Path(spec.origin).parent / rest).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(pinned()))
def test_the_file_has_the_symbols(path: str):
    text = text_of(path)

    for word in pinned()[path]:
        for part in re.split(r"[.()]", word):
            assert part in text, f"{path} has no {word}"


def test_there_are_many():
    assert len(pinned()) >= 10


def test_autocasts_cache_is_where_the_scheme_says():
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    header = Path(spec.origin).parent / "include" / "ATen" / "autocast_mode.h"
    if not header.exists():
        pytest.skip("this torch comes without its headers")
    assert "cached_cast" in header.read_text(encoding="utf-8")
