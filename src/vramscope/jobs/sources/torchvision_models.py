"""torchvision's models: image classifiers, detectors, and segmenters for inference."""

from __future__ import annotations

from typing import Any

from vramscope.errors import SourceError
from vramscope.jobs.facts import CLASSIFICATION, DETECTION, INFERENCE, Facts
from vramscope.jobs.source import Source
from vramscope.jobs.sources.paper import Paper, did_you_mean, library, made

_TASKS = {
    "classification": (CLASSIFICATION, INFERENCE),
    "detection": (DETECTION, INFERENCE),
    "segmentation": (INFERENCE,),
}
_SINGLE_HEAD = ("googlenet", "inception_v3")
"""Their auxiliary heads are left out, as in fine-tuning."""


def on_paper(source: Source) -> Paper:
    """A torchvision model with random weights."""
    models = library("torchvision", source).models
    kind = _kind(source, models)
    arguments = _arguments(source, kind)
    module = made(source, lambda: models.get_model(source.name, **arguments, **source.values))
    return Paper(module, _facts(source, models, module, kind, arguments))


def _kind(source: Source, models: Any) -> str:
    """Of which of its families the model is."""
    for kind in ("detection", "segmentation"):
        if source.name in models.list_models(module=getattr(models, kind)):
            return kind
    if source.name in models.list_models(module=models):
        return "classification"
    return _unknown(source, models)


def _unknown(source: Source, models: Any) -> str:
    names = models.list_models()
    if source.name in names:
        raise SourceError(
            f"{source.text}: only torchvision's models of images are built in;"
            " give this one as module:function that returns a vramscope.Job"
        )
    raise SourceError(
        f"{source.text}: torchvision has no model {source.name!r}{did_you_mean(source.name, names)}"
    )


def _arguments(source: Source, kind: str) -> dict[str, Any]:
    """What the program says beside the name: no weights, and no second head."""
    arguments: dict[str, Any] = {"weights": None}
    if kind != "classification":
        arguments["weights_backbone"] = None
    if source.name in _SINGLE_HEAD:
        arguments.update(aux_logits=False, init_weights=False)
    return arguments


def _facts(source: Source, models: Any, module: Any, kind: str, arguments: dict[str, Any]) -> Facts:
    fixed = hasattr(module, "image_size")
    settings = {"arguments": arguments, **({"image_argument": "image_size"} if fixed else {})}
    return Facts(
        tasks=_TASKS[kind],
        image=source.values.get("image_size") or _image(source, models, module),
        classes=source.values.get("num_classes") or _classes(source, models),
        settings=settings,
    )


def _image(source: Source, models: Any, module: Any) -> int:
    """The side of the images that it sees: after a detector's own resizing, else after its recipe's."""
    transform = getattr(module, "transform", None)
    if transform is not None:
        fixed = getattr(transform, "fixed_size", None)
        return int(fixed[0] if fixed else transform.min_size[-1])
    recipe = models.get_model_weights(source.name).DEFAULT.transforms()
    return int((getattr(recipe, "crop_size", None) or recipe.resize_size)[0])


def _classes(source: Source, models: Any) -> int:
    return len(models.get_model_weights(source.name).DEFAULT.meta["categories"])
