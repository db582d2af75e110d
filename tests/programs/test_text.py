"""Text: transformers' Trainer and generate(), LoRA and QLoRA by peft, recurrent layers."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _transformers():
    pytest.importorskip("transformers")


def test_trainer_with_accumulation_evaluation_and_checkpointing(program):
    pytest.importorskip("accelerate")
    ran = program("trainer_bert.py").check().unchanged()

    assert len(ran.of("step")) == 2  # of each of three runs
    assert ran.peak("scaled") == pytest.approx(ran.peak("plain"), rel=0.01)  # fp16 and its scaler, bf16
    assert 4 * ran.facts["states"]["parameter_bytes"] < ran.peak("checkpointed") < 0.75 * ran.peak("plain")


def test_lora_trains_in_less_than_the_whole_model(program):
    pytest.importorskip("peft")
    ran = program("peft_lora.py").check().unchanged()

    parameters = ran.facts["model"]["parameter_bytes"]
    assert ran.peak("full") > 4 * parameters
    assert parameters < ran.peak("lora") < ran.peak("full") - 2 * parameters


def test_qlora_holds_the_quantised_sizes(program):
    pytest.importorskip("peft")
    pytest.importorskip("bitsandbytes")
    ran = program("qlora.py").check().unchanged()

    assert len(ran.of("step")) == 3
    quantised = 4 * (2 * 512 * 512 + 2 * 512 * 256 + 3 * 512 * 1408)
    # Half a byte each; one byte of scale for every 64, doubly quantised; embedding and head stay in bf16.
    assert ran.facts["loaded"]["allocated_bytes"] == pytest.approx(quantised // 2 + quantised // 64 + 2 * 2 * 2000 * 512, rel=0.02)


def test_generate_makes_exactly_what_was_asked_for(program):
    ran = program("generate.py").check().unchanged()

    made = {name: fact["new"] for name, fact in ran.facts.items() if name.endswith("tokens")}
    assert made == {f"{way} tokens": 24 for way in ("greedy", "sampled", "beam", "static")}
    assert ran.peak("beam") > ran.peak("greedy")


def test_recurrent_layers_over_packed_sentences(program, workspaces):
    ran = program("recurrent.py").check().unchanged()

    for layer in ("LSTM", "GRU"):
        parameters = ran.facts[f"{layer} model"]["parameter_bytes"]
        assert 4 * parameters < ran.peak(layer) - workspaces < 8 * parameters
    assert ran.peak("GRU") < ran.peak("LSTM")
    assert any("RNN" in str(entry["what"]) for entry in ran.of("modelled"))
