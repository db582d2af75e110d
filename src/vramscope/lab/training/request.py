"""What `vramscope lab train` is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from vramscope.cards import find_card
from vramscope.errors import RecipeError, SourceError, UsageError
from vramscope.jobs.knobs import knob_named
from vramscope.jobs.source import FUNCTION, TIMM, Source, parse_source
from vramscope.jobs.technique import nearest
from vramscope.lab.article import BATCH, CARD, IMAGE
from vramscope.lab.training import article
from vramscope.lab.training.tunes import tune_of

AUTO, CUDA, MPS, CPU = "auto", "cuda", "mps", "cpu"
DEVICES = (AUTO, CUDA, MPS, CPU)
PRECISIONS = ("fp32", "amp-fp16", "amp-bf16", "bf16")
"""Those in which a classifier can be trained on any device."""
_MOST_LR = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """A grid: every precision with every way of tuning.  Checked by `request_of`."""

    model: str = "resnet18"
    """A timm model's name, or a SOURCE as in `vramscope plan`."""
    data: str = "fake"
    """``fake``, ``flowers102`` or ``folder:PATH``."""
    size: int = article.TRAIN_IMAGES
    """How many images ``fake`` has, and as many others to evaluate on."""
    image: int | None = None
    """The side that images are brought to, in pixels; None: what the model was made for."""
    precision: Sequence[str] = ("fp32", "amp-fp16")
    tune: Sequence[str] = ("full", "freeze:0.95", "lora:4")
    batch: int = BATCH
    epochs: int = 1
    optimizer: str = "adam"
    lr: float | None = None
    """The learning rate; None: 1e-3 for Adam and AdamW, as PyTorch has it, else what `vramscope plan` writes."""
    seed: int = 0
    device: str = AUTO
    """cuda, mps or cpu; auto: the first of them that is here."""
    gpu: str = CARD
    """The virtual card of the predictions."""
    predicted_batch: int = BATCH
    predicted_image: int = IMAGE
    out: str | os.PathLike[str] | None = None
    """The SQLite file in which finished cells are kept; None: one in the user's cache."""
    again: bool = False
    """Trains cells that are known, too."""
    workers: int | None = None
    """Processes that read images; None: none for ``fake``, else two."""
    data_root: str | os.PathLike[str] | None = None
    """Where Flowers102 is kept; None: in the user's cache."""

    @property
    def cells(self) -> tuple[tuple[str, str], ...]:
        """Precision and tune of each cell; the first one is what the others are held against."""
        return tuple(product(self.precision, self.tune))

    @property
    def source(self) -> Source:
        """Where the model comes from; a bare name is timm's.  SourceError for what names none."""
        if "/" in self.model.partition("?")[0] or ":" in self.model:
            return parse_source(self.model)
        return parse_source(f"{TIMM}/{self.model}")


def request_of(request: Request) -> Request:
    """The request with its words in their usual form; UsageErrors for those that there are not."""
    if request.source.library == FUNCTION:
        raise SourceError(
            f"{request.model}: a Job makes its own batches, `lab train` brings images: name a model of timm,"
            " torchvision or transformers"
        )
    _check_numbers(request)
    if request.device not in DEVICES:
        raise UsageError(f"--device {request.device}: {nearest(request.device, DEVICES)}")
    return replace(
        request,
        precision=_distinct(request.precision, _precision, "--precision"),
        tune=_distinct(request.tune, tune_of, "--tune"),
        optimizer=knob_named("optimizer").position(request.optimizer),
        gpu=find_card(request.gpu).id,
    )


def _distinct(texts: Sequence[str], usual: Callable[[str], str], option: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(usual(text.strip()) for text in texts))
    if not found:
        raise UsageError(f"{option}: write at least one; several have commas between them")
    return found


def _precision(text: str) -> str:
    if text not in PRECISIONS:
        raise RecipeError(f"--precision {text}: {nearest(text, PRECISIONS)}")
    return text


def _check_numbers(request: Request) -> None:
    least_one = {
        "--size": request.size,
        "--image": request.image if request.image is not None else 1,
        "--batch": request.batch,
        "--epochs": request.epochs,
        "--predict-batch": request.predicted_batch,
        "--predict-image": request.predicted_image,
    }
    for option, value in least_one.items():
        if value < 1:
            raise UsageError(f"{option} {value}: it must be at least 1")
    for option, number in (("--workers", request.workers or 0), ("--seed", request.seed)):
        if number < 0:
            raise UsageError(f"{option} {number}: it must not be negative")
    if request.lr is not None and not 0 < request.lr < _MOST_LR:
        raise UsageError(f"--lr {request.lr:g}: a learning rate is above 0 and below {_MOST_LR}")
