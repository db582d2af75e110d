"""The page's own files and the libraries that it carries, as text."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

SCRIPTS = (
    *("units", "dom", "colours", "trace", "sample", "lanes", "chart", "legend", "hover"),
    *("groups", "grouping", "icicle", "cells", "table", "moment", "page", "main"),
)
"""In this order they make one script; each uses only what is named in it or another, at call time."""
LIBRARIES = ("uplot", "d3-hierarchy")


@cache
def text_of(name: str) -> str:
    """A file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """All JavaScript: the libraries with their licences in front of them, then the page's own."""
    own = "\n".join(text_of(f"script/{name}.js") for name in SCRIPTS)
    return "\n".join([*map(_library, LIBRARIES), f'(() => {{\n"use strict";\n{own}\n}})();'])


@cache
def style() -> str:
    """All CSS; uPlot's is under the licence that stands in the script."""
    return text_of("vendor/uplot.css") + text_of("page.css")


def policy() -> str:
    """The content security policy: this script and this style run, nothing else does and nothing is fetched."""
    allowed = f"script-src '{_digest(script())}'; style-src '{_digest(style())}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"


def _library(name: str) -> str:
    licence = text_of(f"vendor/{name}.LICENSE").strip()
    return f"/*!\n{name}\n\n{licence}\n*/\n{text_of(f'vendor/{name}.js').strip()}"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
