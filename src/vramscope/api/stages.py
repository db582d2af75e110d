"""The laboratory's stages: one training step in twelve readings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vramscope.api.program import refuse_nested
from vramscope.api.setting import card_named, memory_of

if TYPE_CHECKING:
    from vramscope.lab.stages.asking import Asked
    from vramscope.lab.stages.value import Staged


def asked_stages(
    model: str,
    gpu: str | None,
    shapes: Mapping[str, int | None],
    *,
    tiny: bool,
    memory: str | int | None,
    measures: bool,
) -> Asked:
    """What is asked for, as the laboratory takes it; the arguments are those of `lab_stages`."""
    from vramscope.lab.article import CARD
    from vramscope.lab.stages.asking import Asked, source_named

    sizes = tuple((name, str(size)) for name, size in shapes.items() if size is not None)
    card = card_named(gpu, CARD).id
    return Asked(source_named(model), sizes, tiny, card, memory_of(memory), measures)


def lab_stages(
    model: str,
    gpu: str | None = None,
    *,
    batch: int | None = None,
    image: int | None = None,
    seq: int | None = None,
    no_activations: bool = False,
    memory: str | int | None = None,
    measure: bool = True,
) -> Staged:
    """What is reserved after each stage of one Adam step of a model: by formula, predicted, measured, published.

    model               a timm model's name, or torchvision/NAME, hf/REPO, hf/FOLDER, hf/TYPE?key=value&…
    gpu                 the card to predict for; None: this machine's, else an RTX 3060
    batch, image, seq   what the data look like; None: images 90 of the model's own size, texts as `plan` has them
    no_activations      the article's tiny input instead: batch 1, image 64, seq 16
    memory              bytes or a text like "12GiB" instead of the card's memory, or "unlimited"
    measure             it runs on this machine's own card as well, if there is one

    What does not fit or breaks off says so.  Raises VramscopeError (SourceError, RecipeError …) for a model
    that cannot be had or has no such stages."""
    from vramscope.lab.stages.making import make

    refuse_nested("measured")
    shapes = {"batch": batch, "image": image, "seq": seq}
    wanted = asked_stages(model, gpu, shapes, tiny=no_activations, memory=memory, measures=measure)
    return make(wanted).staged
