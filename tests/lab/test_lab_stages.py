"""lab/stages: the article's staged measurement, on the virtual card beside what the article printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

import vramscope
from vramscope.cli.lab_stages import stages as command
from vramscope.errors import NoGpuError, RecipeError, SourceError, UsageError
from vramscope.jobs.facts import CAUSAL_LM, CLASSIFICATION, DETECTION, INFERENCE, Facts
from vramscope.lab.article import article
from vramscope.lab.stages import asking, formula, making, measuring, program
from vramscope.lab.stages.asking import Asked, source_named, work_of
from vramscope.lab.stages.making import Made, make
from vramscope.lab.stages.told import told_by
from vramscope.lab.stages.value import STAGES, Staged
from vramscope.planning.cell import Cell
from vramscope.real import launch
from vramscope.real.nvml import RealCard
from vramscope.run.store import load_run
from vramscope.units import GIB, MIB

RESNET = Facts((CLASSIFICATION, INFERENCE), "ResNet", 11_228_838, image=224, classes=102)
LLAMA = Facts((CAUSAL_LM, INFERENCE), "LlamaForCausalLM", 200_000, vocabulary=1000, positions=2048)
TINY_LLAMA = (
    "hf/llama?hidden_size=64&num_hidden_layers=2&intermediate_size=128&vocab_size=1000&num_attention_heads=4"
)
EXACT = ("import", "input", "model", "second model", "optimizer", "loss", "backward", "step", "zero_grad")
"""At batch 1, where workspaces are small; counting and forwards hold cached ones, which are cuDNN's."""
TOLERANCES: Mapping[tuple[str, int], float] = {
    ("resnet18", 1): 0.025,
    ("resnet50", 1): 0.02,
    ("resnet101", 1): 0.0,
    ("resnet101", 90): 0.02,
}
"""Of each reading; docs/accuracy.md has those of the other tables, and why."""


@cache
def made(model: str, batch: int) -> Made:
    return make(Asked(source_named(model), tiny=batch == 1, measures=False))


def sizes(staged: Staged) -> dict[str, int | None]:
    return {each.stage: each.predicted_bytes for each in staged.readings}


@pytest.mark.virtual
@pytest.mark.parametrize(("model", "batch"), TOLERANCES)
def test_the_prediction_is_the_articles_within_the_tolerance(model: str, batch: int):
    staged = made(model, batch).staged
    table = article().table(model, batch, 64 if batch == 1 else 224)

    assert table is not None
    assert {each.stage: each.published_bytes for each in staged.readings} == table.reserved_bytes
    assert tuple(sizes(staged)) == STAGES
    for stage, size in sizes(staged).items():
        assert size == pytest.approx(table.reserved_bytes[stage], rel=TOLERANCES[model, batch], abs=0)
    if batch == 1:
        assert {stage: sizes(staged)[stage] for stage in EXACT} == {
            stage: table.reserved_bytes[stage] for stage in EXACT
        }


@pytest.mark.virtual
@pytest.mark.parametrize(("model", "batch"), TOLERANCES)
def test_what_a_reading_holds_adds_up_to_it(model: str, batch: int):
    readings = made(model, batch).staged.readings

    assert readings[0].holds is None  # no card is used yet
    for each in readings[1:]:
        assert each.holds is not None
        assert each.holds.reserved_bytes == each.predicted_bytes


@pytest.mark.virtual
def test_where_the_card_is_full_the_stage_says_so():
    staged = made("resnet101", 90).staged

    assert {each.stage: each.retries for each in staged.readings if each.retries} == {"backward": 1}
    assert not any(each.retries for each in made("resnet101", 1).staged.readings)


@pytest.mark.virtual
def test_each_stage_holds_what_it_makes():
    held = {each.stage: each.holds for each in made("resnet101", 90).staged.readings if each.holds}
    parameters = 4 * made("resnet101", 90).staged.parameters

    assert held["model"].live["parameter"] == pytest.approx(parameters, rel=0.01)
    assert held["second model"].live["parameter"] == pytest.approx(2 * parameters, rel=0.02)
    assert held["second model"].live["input"] == held["model"].live["input"] == 52 * MIB
    assert "activation" not in held["no_grad forward"].live
    assert held["forward"].live["activation"] > 10 * GIB
    assert held["step"].live["optimizer_state"] == pytest.approx(2 * parameters, rel=0.02)
    assert held["step"].live["gradient"] > parameters
    assert "gradient" not in held["zero_grad"].live
    assert held["zero_grad"].cached["gradient"] > parameters


@pytest.mark.virtual
def test_the_count_is_fvcores_and_what_is_kept_is_twice_as_much():
    staged = made("resnet101", 90).staged

    assert staged.counted is not None
    assert (staged.counted.by, staged.counted.unit) == ("fvcore", "multiply-add")
    assert staged.counted.flops == 709_274_373_120
    assert staged.counted.activations == 1_460_883_420
    kept = sum(staged.activations.values())
    assert kept == pytest.approx(2 * 4 * staged.counted.activations, rel=0.05)
    assert list(staged.activations)[:2] == ["Conv2d", "BatchNorm2d"]


@pytest.mark.virtual
def test_what_does_not_fit_has_its_readings_so_far(capsys: pytest.CaptureFixture[str]):
    status = invoke("resnet18", "--batch", "8", "--memory", "400MiB", "--no-measure", "--json", "-")
    (staged,) = json.loads(capsys.readouterr().out)["models"]
    readings = {each["stage"]: each["predicted_bytes"] for each in staged["readings"]}

    assert status == 3
    assert staged["failure"]["requested_bytes"] > 0
    assert readings["model"] == 64 * MIB
    assert readings["step"] is None


def invoke(*words: str) -> Any:
    return command.main(list(words), standalone_mode=False)


@pytest.mark.virtual
def test_a_language_model_has_the_same_stages_and_is_handed_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    code, run, told = tmp_path / "stages.py", tmp_path / "stages.vram", tmp_path / "stages.json"
    words = ["--no-activations", "--batch", "2", "--no-measure", "--emit", str(code), "-o", str(run)]
    status = invoke(TINY_LLAMA, *words, "--json", str(told))
    shown = capsys.readouterr().out
    (staged,) = json.loads(told.read_text())["models"]

    assert status == 0
    assert staged["shapes"] == {"batch": 2, "seq": 16}
    assert staged["counted"]["by"] == "torch.utils.flop_counter"
    assert {each["published_bytes"] for each in staged["readings"]} == {None}
    assert [each["stage"] for each in staged["readings"] if each["predicted_bytes"] is None] == []
    assert [each["stage"] for each in staged["readings"] if each["formula_bytes"] is None] == [
        *("FLOPs count", "forward", "loss", "backward"),
    ]
    assert "no_grad forward" in shown
    assert f"vramscope show {run} --stages" in shown.replace("\n", "")
    assert 'read("FLOPs count")' in code.read_text()
    assert load_run(run).name == "stages"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ([], "name a MODEL"),
        (["--all", "--no-activations"], "both sizes"),
        (["resnet18", "--all", "--emit", "x.py"], "one program"),
    ],
)
def test_wrong_words_say_what_to_write(words: list[str], what: str):
    with pytest.raises(UsageError, match=what):
        invoke(*words)


def test_a_batch_of_nothing_is_refused():
    with pytest.raises(click.BadParameter):
        invoke("resnet18", "--batch", "0")


def test_all_of_it_is_the_articles_three_models_at_both_sizes(monkeypatch: pytest.MonkeyPatch):
    seen: list[Asked] = []
    monkeypatch.setattr(making, "make_all", lambda wanted, tell: seen.extend(wanted) or [])
    invoke("--all", "--gpu", "t4")

    assert [(each.source.name, each.tiny, each.card) for each in seen] == [
        (model, tiny, "t4") for tiny in (False, True) for model in asking.MODELS
    ]


@pytest.mark.virtual
def test_python_gets_the_same_readings():
    staged = vramscope.lab_stages("resnet18", "rtx-3060", no_activations=True, measure=False)

    assert replace(staged, versions={}) == replace(made("resnet18", 1).staged, versions={})
    assert staged.to_json()["readings"][1]["stage"] == "input"
    with pytest.raises(UsageError):
        vramscope.lab_stages("resnet18", memory="much")


# -- what is asked for ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("resnet18", "timm/resnet18?num_classes=102"),
        ("timm/resnet18", "timm/resnet18?num_classes=102"),
        ("resnet18?num_classes=7", "timm/resnet18?num_classes=7"),
        ("resnet18?in_chans=1", "timm/resnet18?in_chans=1&num_classes=102"),
        ("torchvision/resnet18", "torchvision/resnet18"),
        ("hf/gpt2", "hf/gpt2"),
    ],
)
def test_a_plain_name_is_timms_with_the_articles_classes(text: str, source: str):
    assert source_named(text).text == source


def test_a_name_of_nothing_is_refused():
    with pytest.raises(SourceError):
        source_named("nope/model")


@pytest.mark.parametrize(
    ("facts", "asked", "shapes"),
    [
        (RESNET, {}, {"batch": "90", "image": "224"}),
        (RESNET, {"tiny": True}, {"batch": "1", "image": "64"}),
        (RESNET, {"tiny": True, "shapes": (("batch", "2"),)}, {"batch": "2", "image": "64"}),
        (LLAMA, {}, {"batch": "8", "seq": "512"}),
        (LLAMA, {"tiny": True}, {"batch": "1", "seq": "16"}),
    ],
)
def test_the_sizes_are_the_articles_where_nothing_is_said(
    facts: Facts, asked: dict[str, Any], shapes: dict[str, str]
):
    work = work_of(Asked(source_named("hf/any"), **asked), facts)

    assert {name: work.recipe[name] for name in shapes} == shapes


@pytest.mark.parametrize(
    ("model", "classes", "there"),
    [("resnet18", 102, True), ("resnet18?num_classes=10", 10, False), ("resnet18?in_chans=3", 102, False)],
)
def test_the_articles_figures_are_those_of_its_own_models(model: str, classes: int, there: bool):
    work = work_of(Asked(source_named(model)), replace(RESNET, classes=classes))

    assert (making.published(work) is not None) == there


# -- formulas -----------------------------------------------------------------------------------------
def test_the_forms_are_of_all_stages():
    assert tuple(formula.FORMS) == STAGES
    assert {stage: formula.form_of(stage) for stage in ("import", "second model", "backward")} == {
        "import": "0",
        "second model": "x + 2P",
        "backward": "x + 2P + A",
    }


def test_a_form_is_a_sum_and_unknown_without_a_count():
    assert formula.value_of("step", 100, 10, None) == 140
    assert formula.value_of("forward", 100, 10, 1) == 111
    assert formula.value_of("forward", 100, 10, None) is None


@pytest.mark.parametrize(
    ("facts", "size"), [(RESNET, 90 * 3 * 224 * 224 * 4), (LLAMA, 8 * 512 * 8)], ids=["images", "texts"]
)
def test_the_input_is_what_its_shape_says(facts: Facts, size: int):
    work = work_of(Asked(source_named("hf/any")), facts)

    assert formula.input_bytes(facts, work.recipe) == size
    assert formula.element_bytes(work.recipe) == 4


# -- the program ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("task", [INFERENCE, "custom"])
def test_a_model_without_a_loss_of_its_own_is_refused(task: str):
    work = work_of(Asked(source_named("torchvision/any")), Facts((task,), "Any", image=224))

    with pytest.raises(RecipeError, match="a forward and a loss that are apart"):
        program.write_stages(work)


def test_without_fvcore_torch_counts(monkeypatch: pytest.MonkeyPatch):
    work = work_of(Asked(source_named("resnet18")), RESNET)
    monkeypatch.setattr(program, "find_spec", lambda name: None)
    text = program.write_stages(work)

    assert "FlopCounterMode" in text
    assert "fvcore" not in text


def test_a_large_model_is_made_on_the_card_and_others_are_moved_there():
    large = replace(LLAMA, parameters=2_000_000_000, settings={"by_type": True})
    texts = [
        program.write_stages(work_of(Asked(source_named("hf/llama")), facts)) for facts in (LLAMA, large)
    ]

    assert ["with device:" in text for text in texts] == [False, True]
    assert "dtype=torch.bfloat16" in texts[1]


def test_a_detectors_boxes_are_made_before_its_first_reading_of_them():
    facts = Facts((DETECTION,), "FasterRCNN", image=800, classes=91)
    text = program.write_stages(work_of(Asked(source_named("torchvision/fasterrcnn")), facts))

    assert text.index("def target()") < text.index('read("import")') < text.index("targets = [")
    assert "model(images, targets)" in text


# -- what the program prints, and the real card --------------------------------------------------------
def test_lines_of_others_are_no_readings():
    told = told_by(
        'hello\n{"stage": "input", "reserved_bytes": 7}\n{"stage": "lunch", "reserved_bytes": 1}\n{broken\n[1]\n'
        '{"stage": "model"}\n{"counted": "me", "flops": 1}\n{"counted": "fvcore", "flops": 2.0, "activations": null}\n'
    )

    assert told.readings == {"input": 7}
    assert told.counted is not None
    assert (told.counted.flops, told.counted.activations) == (2, None)


@pytest.fixture
def real_card(monkeypatch: pytest.MonkeyPatch) -> None:
    card = RealCard(0, "GPU-0", "NVIDIA Test", 8 * GIB)
    for module in (measuring, launch):
        monkeypatch.setattr(module, "real_cards", lambda: (card,))


def test_a_real_card_runs_the_same_program(real_card: None, capfd: pytest.CaptureFixture[str]):
    line = json.dumps({"stage": "input", "reserved_bytes": 2 * MIB})
    found = measuring.measured(Cell(f"print({line!r})\nraise ValueError('enough')", "stages", "t4"))

    assert found is not None
    assert found.card == "NVIDIA Test"
    assert found.told.readings == {"input": 2 * MIB}
    assert found.why_not == "ValueError: enough"
    assert capfd.readouterr() == ("", "")


def test_without_a_real_card_nothing_is_measured(monkeypatch: pytest.MonkeyPatch):
    def none() -> None:
        raise NoGpuError("none")

    monkeypatch.setattr(measuring, "real_cards", none)
    assert measuring.measured(Cell("", "stages", "t4")) is None
