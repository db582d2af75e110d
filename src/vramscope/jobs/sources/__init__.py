"""What the models of each library are, on paper: all of this runs in a process that has the library."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from vramscope.jobs.source import DIFFUSERS, FUNCTION, HF, TIMM, TORCHVISION

if TYPE_CHECKING:
    from vramscope.jobs.source import Source
    from vramscope.jobs.sources.paper import Paper

_MODULES = {
    TIMM: "timm_models",
    TORCHVISION: "torchvision_models",
    HF: "hf_models",
    DIFFUSERS: "diffusers_models",
    FUNCTION: "functions",
}


def on_paper(source: Source) -> Paper:
    """The source's model, made without memory; SourceError or MissingLibraryError if it cannot be."""
    module = importlib.import_module(f"vramscope.jobs.sources.{_MODULES[source.library]}")
    paper: Paper = module.on_paper(source)
    return paper
