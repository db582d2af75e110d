"""Denoisers of diffusers, made from a config alone."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

from vramscope.errors import SourceError
from vramscope.jobs.denoisers import DENOISERS
from vramscope.jobs.facts import DIFFUSION, INFERENCE, Facts
from vramscope.jobs.source import Source
from vramscope.jobs.sources.hub import folder_of, had, kept
from vramscope.jobs.sources.paper import Paper, check_keys, library, made

_FILES = ("config.json", "unet/config.json", "transformer/config.json")
"""A model's own folder, and the denoiser in a pipeline's."""
_FIGURES = (int, float, str, bool, type(None))


def on_paper(source: Source) -> Paper:
    """A denoiser of a class with figures typed by hand, of a local folder, or of a repository."""
    diffusers = library("diffusers", source)
    typed = source.name in DENOISERS
    config, subfolder = ({"_class_name": source.name}, "") if typed else _of_file(source)
    name = _class_name(source, config)
    kind = getattr(diffusers, name)
    check_keys(source, _arguments(kind), name)
    figures = {key: value for key, value in config.items() if key in _arguments(kind)}
    module = made(source, lambda: kind(**{**figures, **source.values}))
    return Paper(module, _facts(module, {"class": name, "typed": typed, "subfolder": subfolder}))


def _arguments(kind: Any) -> set[str]:
    return set(inspect.signature(kind.__init__).parameters) - {"self"}


def _of_file(source: Source) -> tuple[dict[str, Any], str]:
    """A config that is a file, and the subfolder that it is in."""
    folder = folder_of(source, *_FILES)
    if folder is not None:
        path = next(folder / file for file in _FILES if (folder / file).is_file())
        return json.loads(path.read_text()), "" if path.parent == folder else path.parent.name
    return _of_repository(source)


def _of_repository(source: Source) -> tuple[dict[str, Any], str]:
    known = f"; built in are {', '.join(DENOISERS)}"
    if "/" not in source.name:
        raise SourceError(f"{source.text}: no class, folder or repository that vramscope can use{known}")
    faults = []
    for file in sorted(_FILES, key=lambda file: kept(source, file) is None):  # the cache first
        try:
            return json.loads(had(source, file).read_text()), str(Path(file).parent).strip(".")
        except SourceError as error:
            if not str(error).endswith(file):  # the hub itself fails, or the repository
                raise
            faults.append(error)
    raise faults[0]


def _class_name(source: Source, config: dict[str, Any]) -> str:
    name = str(config.get("_class_name", "a class without a name"))
    if name not in DENOISERS:
        raise SourceError(
            f"{source.text}: {name} has no built-in inputs; those of {', '.join(DENOISERS)} are built in:"
            " give this one as module:function that returns a vramscope.Job"
        )
    return name


def _facts(module: Any, settings: dict[str, Any]) -> Facts:
    config = dict(module.config)
    denoiser = DENOISERS[type(module).__name__]
    figures = {key: value for key, value in config.items() if isinstance(value, _FIGURES) and key[0] != "_"}
    side = config.get("sample_size") or denoiser.usual_side
    side = side if isinstance(side, int) else side[0]
    return Facts(
        tasks=(DIFFUSION, INFERENCE),
        image=side * denoiser.pixels,
        channels=config["in_channels"],
        abilities=("gradient_checkpointing",) if module._supports_gradient_checkpointing else (),
        settings={**settings, "config": figures},
    )
