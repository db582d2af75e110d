"""Formulas by name: figures as people write them, errors that name the way, worked numbers."""

from __future__ import annotations

import pytest

from vramscope.errors import UsageError
from vramscope.theory.catalogue import BY_NAME, figures_of, formula_of, usage_of, whole


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("512", 512),
        ("11e9", 11_000_000_000),
        ("6.7B", 6_700_000_000),
        ("4k", 4000),
        ("124,439,808", 124_439_808),
        ("1_000", 1000),
        (" 3 M ", 3_000_000),
        ("7G", None),
        ("-3", None),
        ("", None),
        ("1e400", None),
    ],
)
def test_numbers_as_people_write_them(text: str, number: int | None):
    assert whole(text) == number


def test_lora_of_1024_x_512_with_rank_8():
    found = formula_of("lora:inputs=1024,outputs=512,rank=8").values

    assert found["parameters"] == 1024 * 8 + 512 * 8
    assert found["adam_bytes"] == 2 * 4 * 12288
    assert found["share"] == pytest.approx(12288 / (1024 * 512))


def test_lora_of_a_convolution_has_its_kernel_in_the_first_matrix():
    assert formula_of("lora:inputs=64,outputs=128,rank=4,kernel=3").values["parameters"] == 4 * (64 * 9 + 128)


def test_the_cache_of_llama_2_7b_is_half_a_mib_a_token():
    one = "kv-cache:layers=32,batch=1,seq=1,head=128,heads=32"
    values = [
        formula_of(each).values["kv_cache_bytes"] for each in (one, f"{one},kv_heads=8", f"{one},kv_heads=1")
    ]

    assert values == [524_288, 131_072, 16_384]


def test_a_window_ends_the_caches_growth():
    text = "kv-cache:layers=2,batch=1,seq={},head=8,heads=4,window=100"
    sizes = [formula_of(text.format(seq)).values["kv_cache_bytes"] for seq in (50, 100, 5000)]

    assert sizes[0] * 2 == sizes[1] == sizes[2]  # type: ignore[operator]


def test_the_blocks_of_gpt_3_are_korthikantis():
    """Table 2 there: 5·a·s/h is 80 for GPT-3 (96 layers, hidden 12288, 96 heads, 2048 tokens)."""
    found = formula_of("transformer:layers=96,batch=1,seq=2048,hidden=12288,heads=96").values
    unit = 96 * 2048 * 12288

    assert found["saved_bytes"] == unit * (34 + 80)
    assert found["flash_saved_bytes"] == unit * 34 + 96 * 4 * 96 * 2048
    assert found["checkpointed_saved_bytes"] == 2 * unit + 2048 * 12288 * (34 + 80)


def test_qlora_saves_0_37_bits_a_weight_by_quantizing_twice():
    """Dettmers et al. 2023, section 3: 0.373."""
    found = formula_of("qlora:weights=8e9").values
    saved = found["without_double_quantization_bytes"] - found["weight_bytes"]  # type: ignore[operator]

    assert saved == pytest.approx(0.373e9, rel=0.001)


@pytest.mark.parametrize("rows", [(64, 64), (100, 200), (1024, 512)])
def test_a_weight_in_nf4_is_as_large_as_bitsandbytes_makes_it(rows: tuple[int, int]):
    import torch

    functional = pytest.importorskip("bitsandbytes.functional")
    from vramscope.theory.adapters import nf4_bytes

    packed, state = functional.quantize_4bit(torch.ones(rows), quant_type="nf4", compress_statistics=True)
    parts = (packed, state.absmax, state.code, state.offset, state.state2.absmax, state.state2.code)
    assert sum(each.nbytes for each in parts) == nf4_bytes(rows[0] * rows[1])


@pytest.mark.parametrize("name", BY_NAME)
def test_each_formula_can_be_worked_out_and_says_for_what(name: str):
    text = ",".join(f"{key}=8" for key, value in figures_of(name).items() if value is None)
    found = formula_of(f"{name}:{text}")

    assert list(found.given) == list(figures_of(name))
    assert found.values
    assert found.expression
    assert found.assumption.endswith(".")
    assert found.source
    assert usage_of(name).startswith(f"{name}:")


def test_an_elements_size_may_be_a_type():
    half, fp32 = (formula_of(f"activation:elements=10,bytes={each}").values for each in ("bf16", "fp32"))

    assert half["saved_bytes"] == 20
    assert fp32["saved_bytes"] == 40


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("linaer:inputs=1", "no formula is called 'linaer': did you mean linear"),
        ("xyzzy", "no formula is called 'xyzzy': there are linear, conv2d"),
        ("linear:inputs=4", "linear: outputs, rows must be given: linear:inputs=…"),
        ("linear:input=4", "linear: 'input=4' is none of its figures"),
        ("linear:inputs", "linear: 'inputs' is none of its figures"),
        ("linear:inputs=x,outputs=1,rows=1", "linear: inputs=x is no number that it can have"),
        ("linear:inputs=0,outputs=1,rows=1", "inputs=0 is no number"),
    ],
)
def test_errors_name_the_way(text: str, told: str):
    with pytest.raises(UsageError) as error:
        formula_of(text)

    assert told in str(error.value)
