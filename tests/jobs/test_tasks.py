"""Every task runs on the virtual card, through the real library, as the program that it writes."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from vramscope.errors import RecipeError
from vramscope.jobs.facts import Facts
from vramscope.jobs.libraries import modules_for
from vramscope.jobs.recipe import recipe_of
from vramscope.jobs.source import parse_source
from vramscope.jobs.write import settled, write_program
from vramscope.planning.cell import Cell
from vramscope.planning.facts import environment_of, facts_of
from vramscope.planning.result import Result
from vramscope.planning.running import run_cell

SIZES = "hidden_size=64&num_hidden_layers=2&num_attention_heads=2&intermediate_size=128&vocab_size=1000"
T5 = "hf/t5?d_model=64&d_kv=16&d_ff=128&num_layers=2&num_heads=2&vocab_size=1000"
UNET = (
    "diffusers/UNet2DConditionModel?sample_size=16&block_out_channels=32,64&layers_per_block=1&norm_num_groups=8"
    "&cross_attention_dim=64&down_block_types=CrossAttnDownBlock2D,DownBlock2D&up_block_types=UpBlock2D,CrossAttnUpBlock2D"
)
DIT = "diffusers/DiTTransformer2DModel?num_layers=2&num_attention_heads=2&attention_head_dim=16&sample_size=16&out_channels=8"


def ran(text: str, positions: dict[str, str], facts: Facts | None = None) -> Result:
    """A source's result with some knobs turned."""
    source = parse_source(text)
    work = settled(source, recipe_of(positions), facts or facts_of(source))
    program = write_program(work).render()
    cell = Cell(program, "job", "rtx-3090", modules_for(source), environment_of(source))
    result = run_cell(cell, limit_s=120).result
    assert result.fits, f"{result.why}\n{program}"
    assert result.check() == ()
    return result


@pytest.mark.virtual
@pytest.mark.models
def test_text_models_are_trained_and_used():
    small = {"batch": "2", "seq": "32"}
    llama, gpt2, bert = (
        f"hf/llama?{SIZES}",
        "hf/gpt2?n_embd=64&n_layer=2&n_head=2&vocab_size=1000",
        f"hf/bert?{SIZES}",
    )
    facts = {text: facts_of(parse_source(text)) for text in (llama, gpt2, bert, T5)}

    trained = {text: ran(text, small, facts[text]) for text in facts}
    used = {
        text: ran(text, {**small, "task": "inference", "precision": "fp32"}, facts[text]) for text in facts
    }
    answers = [ran(T5, {**small, "task": "generate", "new-tokens": "4"}, facts[T5])]
    answers += [
        ran(llama, {**small, "task": "generate", "new-tokens": count}, facts[llama]) for count in ("4", "100")
    ]

    for text in facts:
        assert trained[text].parameters == facts[text].parameters
        assert trained[text].categories["parameter"] == used[text].categories["parameter"]
        assert not {"gradient", "optimizer_state"} & set(used[text].categories)
    assert all(each.peak_allocated_bytes for each in answers)
    # two layers, keys and values, two sequences of 132 tokens, two heads of 32 in bf16
    assert answers[2].categories["kv_cache"] >= 2 * 2 * 2 * 131 * 64 * 2
    assert answers[2].categories["kv_cache"] > answers[1].categories.get("kv_cache", 0)


@pytest.mark.virtual
@pytest.mark.models
def test_the_recipe_decides_the_type_whatever_the_config_says(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("saved")
    (folder / "config.json").write_text(
        '{"model_type": "gpt2", "n_embd": 64, "n_layer": 1, "n_head": 2, "dtype": "bfloat16"}'
    )
    facts = facts_of(parse_source(f"hf/{folder}"))

    sizes = {
        precision: ran(f"hf/{folder}", {"precision": precision, "seq": "8", "batch": "1"}, facts).categories[
            "parameter"
        ]
        for precision in ("fp32", "amp-fp16", "bf16")
    }

    assert sizes["fp32"] == sizes["amp-fp16"] == pytest.approx(2 * sizes["bf16"], rel=0.01)


@pytest.mark.virtual
@pytest.mark.models
def test_image_models_are_trained_and_used():
    facts = facts_of(parse_source("timm/vit_tiny_patch16_224"))
    ran("timm/vit_tiny_patch16_224", {"image": "64", "batch": "2"}, facts)
    used = ran("timm/vit_tiny_patch16_224", {"task": "inference", "batch": "2"}, facts)

    assert used.parameters == facts.parameters


@pytest.mark.virtual
@pytest.mark.models
def test_detectors_are_trained_and_used():
    text = "torchvision/ssdlite320_mobilenet_v3_large"
    facts = facts_of(parse_source(text))

    assert ran(text, {}, facts).phase == "backward"
    assert ran(text, {"task": "inference"}, facts).phase == "forward"


@pytest.mark.virtual
@pytest.mark.skipif(find_spec("diffusers") is None, reason="needs diffusers")
def test_a_denoiser_is_trained():
    assert "gradient" in ran(UNET, {"batch": "2"}).categories


LEARNED = Facts(
    ("causal-lm", "generate"),
    "GPT2LMHeadModel",
    vocabulary=10,
    positions=16,
    settings={"learned_positions": True},
)
LATENTS = Facts(
    ("diffusion",),
    "DiTTransformer2DModel",
    image=128,
    channels=4,
    settings={
        "class": "DiTTransformer2DModel",
        "typed": True,
        "config": {"num_embeds_ada_norm": 9, "out_channels": 8},
    },
)


def test_a_denoiser_that_predicts_the_variance_too_is_trained_on_the_noise():
    text = write_program(settled(parse_source(DIT), recipe_of({}), LATENTS)).render()

    assert "predicted = model(**inputs).sample[:, :4]" in text
    assert "torch.randn(BATCH, 4, IMAGE // 8, IMAGE // 8, device=device)" in text
    assert '"class_labels": torch.randint(9, (BATCH,), device=device)' in text


@pytest.mark.parametrize(
    ("text", "facts", "positions", "words"),
    [
        ("hf/gpt2", LEARNED, {"seq": "17"}, "positions for 16 tokens, not for 17"),
        ("hf/gpt2", LEARNED, {"seq": "16", "task": "generate", "new-tokens": "1"}, "not for 17"),
        (DIT, LATENTS, {"image": "100"}, "multiples of 8, not 100"),
        ("hf/gpt2", LEARNED, {"task": "seq2seq"}, "it can for causal-lm, generate"),
    ],
)
def test_sizes_that_the_model_cannot_take_are_refused(
    text: str, facts: Facts, positions: dict[str, str], words: str
):
    with pytest.raises(RecipeError, match=words):
        write_program(settled(parse_source(text), recipe_of(positions), facts))


@pytest.mark.parametrize(
    ("facts", "task", "expected"),
    [
        (Facts(("causal-lm",), parameters=8_000_000_000, vocabulary=9), "causal-lm", ("1", "512", "bf16")),
        (
            Facts(("causal-lm",), parameters=9_000_000, vocabulary=9, positions=64),
            "causal-lm",
            ("8", "64", "fp32"),
        ),
        (
            Facts(("masked-lm", "inference"), parameters=9_000_000, vocabulary=9),
            "inference",
            ("8", "512", "bf16"),
        ),
    ],
)
def test_what_nobody_turned_suits_the_size_of_the_model(facts: Facts, task: str, expected: tuple[str, ...]):
    recipe = settled(parse_source("hf/any"), recipe_of({"task": task}), facts).recipe

    assert (recipe["batch"], recipe["seq"], recipe["precision"]) == expected
