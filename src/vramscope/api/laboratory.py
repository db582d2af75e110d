"""The laboratory: real trainings beside their predictions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vramscope.api.program import refuse_nested

if TYPE_CHECKING:
    from vramscope.lab.grid import Grid
    from vramscope.lab.training.progress import OnProgress


def lab_train(
    model: str = "resnet18",
    data: str = "fake",
    *,
    size: int | None = None,
    image: int | None = None,
    precision: Sequence[str] | str | None = None,
    tune: Sequence[str] | str | None = None,
    batch: int | None = None,
    epochs: int | None = None,
    optimizer: str | None = None,
    lr: float | None = None,
    seed: int | None = None,
    device: str | None = None,
    gpu: str | None = None,
    predicted_batch: int | None = None,
    predicted_image: int | None = None,
    out: str | os.PathLike[str] | None = None,
    again: bool = False,
    workers: int | None = None,
    data_root: str | os.PathLike[str] | None = None,
    progress: OnProgress | None = None,
) -> Grid:
    """Trains an image classifier for real in every precision with every way of tuning, and predicts each one's memory.

    model             a timm model's name, or a SOURCE as in `plan`
    data              fake, flowers102 or folder:PATH; size is how many images fake has
    image, batch      of the trainings; None: what the model was made for, 90
    precision, tune   several of fp32, amp-fp16, amp-bf16, bf16 and of full, freeze:R, lora:R, article-freeze, …
    epochs, optimizer, lr, seed   as one expects
    device            cuda, mps, cpu or auto
    gpu, predicted_batch, predicted_image   the virtual card and the sizes of the predictions: those of the article
    out               the file that keeps finished cells; again trains those that are in it too
    workers           processes that read images
    data_root         where Flowers102 is kept
    progress          is told how far it is

    A cell that fails says why.  Raises VramscopeError (UsageError, SourceError, NoGpuError …) where nothing
    could be trained at all."""
    from vramscope.lab.training.making import train_grid
    from vramscope.lab.training.progress import silent
    from vramscope.lab.training.request import Request

    refuse_nested("trained")
    given = {
        "size": size,
        "image": image,
        "precision": _several(precision),
        "tune": _several(tune),
        "batch": batch,
        "epochs": epochs,
        "optimizer": optimizer,
        "lr": lr,
        "seed": seed,
        "device": device,
        "gpu": gpu,
        "predicted_batch": predicted_batch,
        "predicted_image": predicted_image,
        "out": out,
        "workers": workers,
        "data_root": data_root,
    }
    known = {name: value for name, value in given.items() if value is not None}
    request = Request(model, data, again=again, **known)  # type: ignore[arg-type]
    return train_grid(request, progress or silent)


def _several(texts: Sequence[str] | str | None) -> tuple[str, ...] | None:
    """``fp32,amp-fp16`` and a list of them are the same."""
    if texts is None:
        return None
    return tuple(texts.split(",")) if isinstance(texts, str) else tuple(texts)
