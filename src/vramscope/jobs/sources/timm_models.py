"""timm's models: image classifiers, and backbones that give features."""

from __future__ import annotations

from typing import Any

from vramscope.errors import SourceError
from vramscope.jobs.facts import CLASSIFICATION, INFERENCE, Facts
from vramscope.jobs.source import Source
from vramscope.jobs.sources.paper import Paper, did_you_mean, library, made


def on_paper(source: Source) -> Paper:
    """A timm model; its size of images is the one that it was trained with, unless ``img_size`` is given."""
    timm = library("timm", source)
    _check_name(source, timm)
    module = made(source, lambda: timm.create_model(source.name, **source.values))
    return Paper(module, _facts(source, module))


def _check_name(source: Source, timm: Any) -> None:
    if timm.is_model(source.name):
        return
    names = timm.list_models()
    raise SourceError(
        f"{source.text}: timm has no model {source.name!r}{did_you_mean(source.name, names)}"
        f" It has {len(names)}; timm.list_models() names them"
    )


def _facts(source: Source, module: Any) -> Facts:
    config = module.pretrained_cfg
    channels, height, _ = config.get("input_size") or (3, 224, 224)
    image = source.values.get("img_size", height)
    classes = getattr(module, "num_classes", 0) or None
    return Facts(
        tasks=(CLASSIFICATION, INFERENCE) if classes else (INFERENCE,),
        image=image if isinstance(image, int) else image[0],
        channels=source.values.get("in_chans", channels),
        classes=classes,
        abilities=_abilities(module),
        settings={"image_argument": "img_size"} if config.get("fixed_input_size") else {},
    )


def _abilities(module: Any) -> tuple[str, ...]:
    try:
        module.set_grad_checkpointing(True)
        module.set_grad_checkpointing(False)
    except Exception:  # some have no such method, some raise in it
        return ()
    return ("set_grad_checkpointing",)
