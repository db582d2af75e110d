"""Every technique does what it says, by the categories of a real step on the virtual card."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from technique_cells import IMAGES, TEXT, WIDE, program, ran, work_of

from vramscope.errors import MissingLibraryError, RecipeError
from vramscope.jobs.facts import CUSTOM, DETECTION, Facts
from vramscope.jobs.knobs import KNOB_GROUPS, KNOBS, KNOBS_BY_NAME
from vramscope.jobs.recipe import recipe_of
from vramscope.jobs.technique import AUTO, Knob, Technique
from vramscope.jobs.techniques import packages
from vramscope.jobs.write import objection

DOCS = Path(__file__).parents[2] / "docs"
ADAPTED = 4 * 2048
"""Elements of LoRA matrices of rank 1 around all linear layers inside TEXT's four blocks."""
LINEAR = 4 * 147_456
"""Elements of those layers."""
EXAMPLES = {"freeze": "freeze:0.5", "n": "4", "pattern": "q_proj|v_proj"}
virtual = [pytest.mark.virtual, pytest.mark.models]


def needs(*names: str) -> list[pytest.MarkDecorator]:
    return [
        *virtual,
        *(pytest.mark.skipif(find_spec(name) is None, reason=f"needs {name}") for name in names),
    ]


def each(*names: str):
    """Marks a test that runs cells with these libraries."""

    def mark(test):
        for one in needs("transformers", "timm", *names):
            test = one(test)
        return test

    return mark


@each()
@pytest.mark.parametrize("tune", ["freeze:0.5", "freeze:model.layers.*"])
def test_what_is_frozen_has_no_gradients_and_no_states(tune: str):
    full, frozen = ran(TEXT), ran(TEXT, tune=tune)

    assert full.trained_bytes == full.highest["gradient"] == 4 * full.result.parameters
    assert frozen.trained_bytes < full.trained_bytes
    assert frozen.highest["gradient"] == frozen.trained_bytes
    assert frozen.highest["optimizer_state"] == 2 * frozen.trained_bytes
    assert frozen.highest["activation"] < full.highest["activation"]


@each("peft")
def test_adapters_alone_are_trained_and_targets_say_which():
    all_linear, some = ran(TEXT, tune="lora:4"), ran(TEXT, tune="lora:4", targets="q_proj|v_proj")
    scaled = ran(TEXT, tune="dora:4")

    assert all_linear.result.trained == 4 * ADAPTED
    assert some.result.trained == 4 * 4 * (256 + 192)
    assert scaled.result.trained == 4 * (ADAPTED + 128 * 2 + 64 * 2 + 256 * 2 + 128)  # a magnitude per output
    assert all_linear.highest["optimizer_state"] == 2 * all_linear.trained_bytes
    assert all_linear.highest["gradient"] == all_linear.trained_bytes


@each("peft")
def test_convolutions_get_adapters_too():
    assert 0 < ran(IMAGES, tune="lora:4").result.trained < ran(IMAGES).result.parameters / 50


@each("peft", "bitsandbytes", "accelerate")
def test_weights_of_qlora_have_four_bits():
    lora, qlora = ran(TEXT, tune="lora:4"), ran(TEXT, tune="qlora:4", precision="amp-bf16")
    saved = lora.highest["parameter"] - qlora.highest["parameter"]

    assert saved == pytest.approx(3.5 * LINEAR, rel=0.05)  # of 4 bytes; less the blocks' scales
    assert qlora.result.trained == lora.result.trained


@each()
@pytest.mark.parametrize(
    ("optimizer", "least", "most"),
    [
        ("sgd", 0, 0),
        ("momentum", 4, 4),
        ("adam", 8, 8),
        ("adamw", 8, 8),
        ("adafactor", 0.01, 0.2),
        ("muon", 5, 8),  # embedding and head are AdamW's
        pytest.param("adamw-8bit", 2, 2.2, marks=needs("bitsandbytes")),
        pytest.param("lion", 4, 4.1, marks=needs("bitsandbytes")),
        pytest.param("adamw-paged", 0, 2, marks=needs("bitsandbytes")),  # small tensors are not paged
        pytest.param("adamw-8bit-paged", 0, 1, marks=needs("bitsandbytes")),
    ],
)
def test_states_have_so_many_bytes_per_parameter(optimizer: str, least: float, most: float):
    result = ran(TEXT, optimizer=optimizer)

    assert least <= result.highest.get("optimizer_state", 0) / result.result.parameters <= most


@each()
def test_implementations_differ_in_their_temporaries():
    peaks = [
        ran(IMAGES, **{"optimizer-impl": name}).result.peak_allocated_bytes
        for name in ("fused", "for-loop", "foreach")
    ]

    assert peaks == sorted(set(peaks))
    assert ran(IMAGES).result.peak_allocated_bytes == peaks[-1]


@each()
@pytest.mark.parametrize("text", [TEXT, IMAGES])
def test_checkpoints_keep_fewer_activations(text: str):
    off, selective, every, on = (
        ran(text, checkpoint=position).highest["activation"]
        for position in ("off", "selective", "every:2", "on")
    )

    assert on < every < off
    assert on < selective < off


@each("peft")
@pytest.mark.parametrize("checkpoint", ["every:2"])
def test_checkpoints_go_with_adapters(checkpoint: str):
    kept = ran(TEXT, checkpoint=checkpoint, tune="lora:4").highest["activation"]

    assert kept < ran(TEXT, tune="lora:4").highest["activation"]


@each()
@pytest.mark.parametrize("position", [{"zero-grad": "zero"}, {"accumulate": "2"}])
def test_gradients_that_stay_are_there_in_the_next_forward_and_backward(position: dict[str, str]):
    given_up, kept = ran(TEXT), ran(TEXT, **position)

    assert given_up.result.phase == kept.result.phase == "backward"
    assert given_up.result.categories.get("gradient", 0) == 0
    assert kept.result.categories["gradient"] == kept.trained_bytes


@each()
def test_clipping_goes_with_a_scaled_loss_and_several_micro_batches():
    clipped = ran(TEXT, clip="norm:0.5", precision="amp-fp16", accumulate="2")

    assert clipped.highest["gradient"] == clipped.trained_bytes


@each()
def test_an_average_is_one_more_copy_of_the_parameters():
    assert ran(TEXT, ema="on").highest["parameter"] == 2 * ran(TEXT).highest["parameter"]


@each()
def test_activations_that_are_offloaded_leave_the_card():
    assert ran(TEXT, offload="activations").highest["activation"] < ran(TEXT).highest["activation"] / 10


@each()
def test_stepping_in_the_backward_leaves_no_gradients_behind():
    stepped = ran(IMAGES, **{"optimizer-in-backward": "on"})

    assert stepped.highest["gradient"] < ran(IMAGES).highest["gradient"] / 3
    assert stepped.highest["optimizer_state"] >= 2 * stepped.trained_bytes


@each()
def test_logits_in_chunks_are_never_whole():
    plain, chunked = ran(TEXT), ran(TEXT, **{"cross-entropy": "chunked:8"})
    logits = 4 * 2 * 128 * 8192

    assert plain.result.peak_allocated_bytes - chunked.result.peak_allocated_bytes > logits


@each("torchao")
def test_weights_in_fewer_bits_are_smaller():
    full, half, quarter = (
        ran(WIDE, task="inference", weights=bits).result.categories["parameter"]
        for bits in ("full", "int8", "int4")
    )
    wide = (
        2 * 1024 * 1024 + 2 * 1024 * 512 + 3 * 1024 * 256
    )  # elements of the linear layers; the head stays whole

    assert full - half == pytest.approx(wide, rel=0.02)  # of 2 bytes; less a scale per row
    assert quarter < half


@each()
def test_a_static_cache_has_its_whole_length_from_the_beginning():
    answers = {"task": "generate", "new-tokens": "32", "seq": "64"}
    grown, whole = (ran(TEXT, cache=cache, **answers) for cache in ("dynamic", "static"))
    token = 2 * 4 * 2 * 32 * 2 * 2  # keys and values, layers, heads, their size, sequences, bytes

    assert whole.highest["kv_cache"] >= token * (64 + 32 - 1)
    assert whole.result.peak_allocated_bytes >= grown.result.peak_allocated_bytes
    assert whole.highest["kv_cache"] < grown.highest["kv_cache"]  # which copies a layer's at every token


@each()
def test_eager_attention_keeps_the_scores_of_all_pairs():
    scores = 4 * 2 * 4 * 128 * 128  # bytes, sequences, heads, pairs: kept by each of four layers

    assert ran(TEXT, attention="eager").highest["activation"] > ran(TEXT).highest["activation"] + 4 * scores


@each()
def test_images_in_channels_last_reach_cudnn():
    notes = {name: ran(IMAGES, **{name: "on"}).result.notes for name in ("channels-last", "cudnn-benchmark")}

    assert any("channels_last" in note for note in notes["channels-last"])
    assert any("benchmark" in note for note in notes["cudnn-benchmark"])
    assert not any("channels_last" in note or "benchmark" in note for note in ran(IMAGES).result.notes)


@each()
def test_expandable_segments_leave_smaller_holes():
    def hole(allocator: str) -> int:
        result = ran(TEXT, allocator=allocator).result
        return result.peak_reserved_bytes - result.peak_allocated_bytes

    assert hole("expandable") < hole("default")


def test_compiling_is_one_line():
    assert "model.compile()" in program(IMAGES, compile="on")


REFUSALS = [
    (IMAGES, {"tune": "qlora"}, "causal-lm"),
    (TEXT, {"tune": "qlora", "precision": "fp32"}, "precision=fp32"),
    (TEXT, {"tune": "qlora", "precision": "bf16", "ema": "on"}, "4-bit"),
    (IMAGES, {"targets": "fc"}, "no adapters"),
    (TEXT, {"channels-last": "on"}, "no images"),
    (TEXT, {"cudnn-benchmark": "on"}, "Conv2d"),
    (IMAGES, {"attention": "eager"}, "no attention"),
    (IMAGES, {"attention": "flash"}, "FlashAttention"),
    (TEXT, {"attention": "flash", "precision": "fp32"}, "fp16 and bf16"),
    (IMAGES, {"cross-entropy": "chunked"}, "vocabulary"),
    (IMAGES, {"cross-entropy": "liger"}, "vocabulary"),
    (TEXT, {"cross-entropy": "chunked", "compile": "on"}, "cross-entropy"),
    (IMAGES, {"compile": "on", "offload": "activations"}, "offload"),
    (IMAGES, {"weights": "int8"}, "trained"),
    (TEXT, {"task": "inference", "weights": "int4", "precision": "fp32"}, "bf16"),
    (IMAGES, {"cache": "static"}, "keys and values"),
    (TEXT, {"task": "inference", "checkpoint": "on"}, "trains nothing"),
    (TEXT, {"task": "generate", "accumulate": "4"}, "trains nothing"),
    (IMAGES, {"optimizer": "adamw-8bit", "optimizer-impl": "fused"}, "adamw-8bit"),
    (IMAGES, {"optimizer": "adafactor", "optimizer-impl": "fused"}, "adafactor"),
    (TEXT, {"optimizer": "muon", "tune": "lora"}, "lora"),
    (TEXT, {"optimizer": "muon", "optimizer-in-backward": "on"}, "two optimizers"),
    (IMAGES, {"optimizer-in-backward": "on", "clip": "norm"}, "norm"),
    (IMAGES, {"optimizer-in-backward": "on", "accumulate": "2"}, "accumulate=2"),
    (IMAGES, {"optimizer-in-backward": "on", "precision": "amp-fp16"}, "GradScaler"),
    (IMAGES, {"optimizer-in-backward": "on", "zero-grad": "zero"}, "optimizer-in-backward"),
    (TEXT, {"checkpoint": "selective", "offload": "activations"}, "offload"),
]


@pytest.mark.parametrize(("text", "positions", "word"), REFUSALS)
def test_what_does_not_go_together_is_said_before_anything_runs(
    text: str, positions: dict[str, str], word: str
):
    sentence = objection(work_of(text, positions))

    assert sentence is not None
    assert word in sentence
    assert sentence.partition(":")[0].partition("=")[0] in positions


def test_models_without_the_parts_that_a_technique_works_on_are_refused():
    bare = Facts(tasks=("image-classification",), kind="Bare", image=8, classes=2, layers={"PReLU": 1})
    detector = Facts(tasks=(DETECTION,), kind="Detector", image=800, classes=2, layers={"Conv2d": 1})
    own = Facts(tasks=(CUSTOM,), kind="Own", layers={"Linear": 1}, abilities=("own_optimizer",))
    tried = [
        (IMAGES, bare, {"checkpoint": "on"}, "no repeated blocks"),
        (IMAGES, bare, {"checkpoint": "every:2"}, "no repeated blocks"),
        (IMAGES, bare, {"tune": "lora"}, "no Linear"),
        (IMAGES, bare, {"optimizer": "muon"}, "no Linear"),
        ("torchvision/ssd", detector, {"channels-last": "on"}, "four dimensions"),
        ("torchvision/ssd", detector, {"attention": "eager"}, "transformers and timm"),
        ("a:job", own, {"optimizer-impl": "fused"}, "the Job"),
        ("a:job", own, {"optimizer-in-backward": "on"}, "the Job"),
    ]

    for text, facts, positions, word in tried:
        assert word in str(objection(work_of(text, positions, facts)))


@pytest.mark.parametrize(
    ("knob", "text", "word"),
    [
        ("tune", "freeze:0", "more than 0"),
        ("tune", "freeze:1.5", "at most 1"),
        ("tune", "freeze", "freeze:"),
        ("tune", 'freeze:a"b', "pattern"),
        ("tune", "lora:0", "at least 1"),
        ("tune", "lora:x", "whole number"),
        ("tune", "loro:4", "did you mean lora"),
        ("tune", "full:1", "nothing behind a colon"),
        ("targets", "q_proj,v_proj", "q_proj|v_proj"),
        ("targets", "(", "q_proj|v_proj"),
        ("clip", "norm:0", "more than 0"),
        ("clip", "norm:nan", "more than 0"),
        ("clip", "norm:much", "number"),
        ("checkpoint", "every:0", "at least 1"),
        ("cross-entropy", "chunked:-1", "at least 1"),
        ("accumulate", "0", "at least 1"),
        ("optimizer", "adamw8", "adamw-8bit"),
    ],
)
def test_arguments_that_make_no_sense_are_named(knob: str, text: str, word: str):
    with pytest.raises(RecipeError, match=r".") as caught:
        recipe_of({knob: text})

    assert word in str(caught.value)


def test_a_library_that_is_not_there_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    tune = KNOBS_BY_NAME["tune"]

    found = packages.missing_for(recipe_of({"tune": "qlora"}))
    assert isinstance(found, MissingLibraryError)
    assert (found.library, found.command) == ("peft", "pip install 'vramscope[models]'")
    assert "tune=qlora:16" in str(found)
    assert packages.missing(tune.by_name["full"]) is None
    for knob in KNOBS:
        for technique in knob.techniques:
            if technique.packages:
                assert str(packages.missing(technique)).count("pip install") == 1


def test_a_library_that_is_there_is_not_missed():
    assert packages.missing(Technique("here", "", packages=("json",))) is None


def positions_of(knob: Knob) -> list[str]:
    """Each position of a knob, with an argument where it must have one."""
    return [EXAMPLES.get(technique.name, technique.name) for technique in knob.techniques]


def written(folder: Path) -> set[tuple[str, str]]:
    """Writes the program of every position that goes with one of the models; those that went."""
    bases = {
        TEXT: [{}, {"precision": "bf16", "tune": "lora"}, {"task": "generate"}, {"task": "inference"}],
        IMAGES: [{}],
    }
    found = set()
    starts = [(text, base) for text, each in bases.items() for base in each]
    for number, (text, base) in enumerate(starts):
        for knob in KNOBS:
            for position in positions_of(knob):
                if knob.name == "task" or objection(work_of(text, {**base, knob.name: position})):
                    continue
                name = f"{number}-{knob.name}-{position}".translate(str.maketrans(":|.", "___"))
                (folder / f"{name}.py").write_text(program(text, **{**base, knob.name: position}))
                found.add((knob.name, position))
    return found


@pytest.mark.skipif(find_spec("ruff") is None, reason="needs ruff")
def test_the_programs_of_all_techniques_are_clean(tmp_path: Path):
    found = written(tmp_path)
    told = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--isolated",
            "--select",
            "E,F,I",
            "--line-length",
            "120",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert found == {
        (knob.name, each) for knob in KNOBS for each in positions_of(knob) if knob.name != "task"
    }
    assert told.returncode == 0, told.stdout


def test_every_knob_and_position_is_in_the_docs():
    table = (DOCS / "techniques.md").read_text()
    rows = [line for line in table.splitlines() if line.startswith("|")]

    for knob in KNOBS:
        assert any(f"`{knob.name}=" in row for row in rows)
        for technique in knob.techniques:
            if knob.number is None and knob.name != "task":
                assert any(f"`{knob.name}={technique.name}" in row for row in rows), (
                    knob.name,
                    technique.name,
                )


def test_what_changes_the_maths_or_intrudes_has_a_price():
    for knob in KNOBS:
        for technique in knob.techniques:
            assert 0 <= technique.intrusion <= 9
            if technique.maths:
                assert technique.price, (knob.name, technique.name)
                assert technique.intrusion, (knob.name, technique.name)


def test_every_knob_is_in_one_group_and_stands_on_a_position_of_its_own():
    assert [knob for group in KNOB_GROUPS.values() for knob in group] == list(KNOBS)
    assert len(KNOBS_BY_NAME) == len(KNOBS)
    for knob in KNOBS:
        assert knob.default == AUTO or knob.position(knob.default) == knob.default
