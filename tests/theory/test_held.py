"""Formulas against predicted runs: sums that close, and parts that are exact."""

from __future__ import annotations

from functools import cache

import pytest

from vramscope.api.formulas import formula_model
from vramscope.errors import RecipeError
from vramscope.theory.held import Held, Row

LLAMA = (
    "hf/llama?hidden_size=64&num_hidden_layers=2&intermediate_size=128&vocab_size=1000&num_attention_heads=4"
    "&num_key_value_heads=2"
)
CASES = {
    "resnet18": ("timm/resnet18", {"batch": "4", "image": "64", "optimizer": "adam"}),
    "llama, amp": (LLAMA, {"batch": "2", "seq": "64", "precision": "amp-bf16", "accumulate": "2"}),
    "llama, amp, lora": (LLAMA, {"batch": "2", "seq": "64", "precision": "amp-bf16", "tune": "lora:8"}),
    "llama, checkpoints": (
        LLAMA,
        {"batch": "2", "seq": "64", "precision": "bf16", "checkpoint": "on", "optimizer-in-backward": "on"},
    ),
    "grouped": ("timm/mobilenetv3_small_100", {"batch": "2", "image": "64"}),
    "generate": (LLAMA, {"batch": "2", "seq": "16", "new-tokens": "8", "task": "generate"}),
}
EXACT = ("parameter", "gradient", "optimizer_state", "buffer", "autocast_cache")
pytestmark = [pytest.mark.virtual, pytest.mark.models]


@cache
def found(case: str) -> Held:
    text, knobs = CASES[case]
    return formula_model(text, "rtx-3060", knobs=knobs)


def row(case: str, category: str) -> Row:
    return next(each for each in found(case).rows if each.category == category)


@pytest.mark.parametrize("case", CASES)
def test_the_sums_close(case: str):
    assert found(case).check() == ()
    assert found(case).run_bytes >= found(case).result.peak_allocated_bytes  # type: ignore[operator]


@pytest.mark.parametrize("case", CASES)
def test_weights_gradients_states_and_casts_are_exact(case: str):
    for each in found(case).rows:
        if each.category in EXACT and not any("freed as soon as" in why for why in each.why):
            assert each.beyond_bytes == 0, each
            assert each.formula is not None


def test_gradients_that_are_stepped_one_by_one_are_never_all_there():
    gradients = row("llama, checkpoints", "gradient")

    assert gradients.beyond_bytes < -gradients.formula_bytes / 2  # type: ignore[operator]
    assert "freed as soon as its parameter has been stepped" in gradients.why[0]


@pytest.mark.parametrize("case", CASES)
def test_the_operations_are_those_of_torchs_counter_but_where_it_is_wrong(case: str):
    told = found(case)

    if case == "grouped":
        assert told.flops_counted > told.flops_formula  # type: ignore[operator]
        assert (
            told.flops_why
            == "the counter takes the gradient of a grouped convolution's weight for that of an ungrouped one"
        )
    else:
        assert told.flops_formula == told.flops_counted
        assert told.flops_why == ""


def test_a_resnets_layers_save_what_their_formulas_say():
    assert row("resnet18", "activation").beyond_bytes == 12  # the loss, and the weight of its mean
    for each in found("resnet18").layers:
        assert each.seen_bytes - each.saved_bytes == (4 if each.kind == "cross_entropy" else 0)


def test_what_has_no_formula_is_named():
    told = " ".join(row("llama, amp", "activation").why)

    assert "the code of LlamaMLP, which has no formula, saves" in told
    assert "cross_entropy saves 4 B more" in told


def test_lora_trains_what_its_formula_says():
    (formula, count), *_ = [
        each for each in found("llama, amp, lora").others if each[0].name.startswith("LoRA")
    ]

    assert formula.values["parameters"] == count == found("llama, amp, lora").trained


def test_a_checkpoint_leaves_its_layers_out_and_says_so():
    plain, checkpointed = row("llama, amp", "activation"), row("llama, checkpoints", "activation")

    assert checkpointed.formula_bytes < plain.formula_bytes  # type: ignore[operator]
    assert any("within a checkpoint" in each for each in checkpointed.why)


def test_a_cache_of_keys_is_what_its_formula_says_but_for_its_growing():
    cache_ = row("generate", "kv_cache")

    assert cache_.formula_bytes == 2 * 2 * 2 * 24 * 2 * 16 * 2
    assert 0 < cache_.beyond_bytes < cache_.formula_bytes
    assert found("generate").claims == ()


def test_a_claim_stands_beside_what_the_run_keeps():
    claims = {each.name: each for each in found("resnet18").claims}

    assert claims["16A"].said_bytes == 16 * 11_689_512
    assert claims["16A"].said_bytes <= claims["16A"].run_bytes < 1.03 * claims["16A"].said_bytes
    assert claims["24x"].said_bytes > claims["24x"].run_bytes


@pytest.mark.parametrize(
    ("source", "knobs", "told"),
    [
        (LLAMA, {"compile": "on"}, "compiled code has no layers"),
        ("torchvision/fasterrcnn_resnet50_fpn", {}, "its shapes follow from values"),
    ],
)
def test_what_cannot_be_watched_is_refused(source: str, knobs: dict[str, str], told: str):
    with pytest.raises(RecipeError, match=told):
        formula_model(source, "rtx-3060", knobs=knobs)


def test_what_was_turned_is_told():
    assert found("llama, checkpoints").positions["checkpoint"] == "on"
    assert "attention" not in found("resnet18").positions
