"""Between which values a fit may search."""

from __future__ import annotations

import pytest

from vramscope.errors import RecipeError
from vramscope.jobs.facts import Facts
from vramscope.jobs.recipe import recipe_of
from vramscope.jobs.source import parse_source
from vramscope.jobs.work import Work
from vramscope.jobs.write import settled
from vramscope.planning.limits import KNOBS_TO_FIT, limits

RESNET = Facts(tasks=("image-classification", "inference"), kind="ResNet", image=224, classes=1000)
LLAMA = Facts(tasks=("causal-lm", "generate"), kind="Llama", vocabulary=32_000, positions=2048)


def work(source: str, facts: Facts, **positions: str) -> Work:
    return settled(parse_source(source), recipe_of(positions), facts)


def test_batches_have_no_end_of_their_own():
    assert limits("batch", work("timm/resnet18", RESNET)) == (8, 1, 1 << 20, 1)


@pytest.mark.parametrize(("side", "step"), [(224, 32), (518, 14), (240, 16), (299, 1)])
def test_images_grow_in_steps_of_what_the_models_own_size_is_made_of(side: int, step: int):
    facts = Facts(tasks=("image-classification",), image=side, classes=1000)

    found = limits("image", work("timm/any", facts))

    assert (found.start, found.multiple_of) == (side, step)


def test_a_sequence_ends_where_the_models_positions_do():
    assert limits("seq", work("hf/llama", LLAMA)).most == 2048


def test_what_is_generated_takes_positions_from_the_prompt():
    generating = work("hf/llama", LLAMA, task="generate", seq="1000", **{"new-tokens": "48"})

    assert limits("seq", generating).most == 2000
    assert limits("new-tokens", generating).most == 1048


def test_a_rank_needs_an_adapter():
    assert limits("lora-rank", work("hf/llama", LLAMA, tune="lora:8")).most == 4096
    with pytest.raises(RecipeError, match="tune=full has no rank; add --tune lora"):
        limits("lora-rank", work("hf/llama", LLAMA))


def test_layers_are_those_of_a_config_of_transformers():
    assert limits("layers", work("hf/llama", LLAMA)).least == 1
    with pytest.raises(RecipeError, match="timm/resnet18 has no num_hidden_layers"):
        limits("layers", work("timm/resnet18", RESNET))


@pytest.mark.parametrize("knob", ["seq", "new-tokens"])
def test_a_shape_that_the_task_does_not_have_is_refused(knob: str):
    with pytest.raises(RecipeError, match=f"image-classification with timm/resnet18 has no {knob}"):
        limits(knob, work("timm/resnet18", RESNET))


def test_what_cannot_be_searched_for_names_what_can():
    with pytest.raises(RecipeError, match="--fit precision: what can be searched for is batch, image, seq"):
        limits("precision", work("timm/resnet18", RESNET))
    assert KNOBS_TO_FIT[0] == "batch"
