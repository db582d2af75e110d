"""`vramscope plan`, as it is typed: real cells on virtual cards, small ones."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from vramscope.run.store import load_run
from vramscope.units import MIB

RESNET = ("plan", "timm/resnet18", "--image", "64", "--gpu", "rtx-3060")

pytestmark = pytest.mark.models


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VRAMSCOPE_JOURNAL", raising=False)


@pytest.mark.virtual
def test_a_matrix_is_held_against_its_first_row(vramscope):
    ran = vramscope(*RESNET, "--batch", "16", "--vary", "tune=full,freeze:0.95", "--json", "plan.json", "--csv", "plan.csv")  # fmt: skip

    assert ran.status == 0, ran.err
    assert "all 2 rows fit; row 2 (freeze:0.95) takes least" in ran.out
    told = json.loads(Path("plan.json").read_text())
    full, frozen = told["rows"]
    assert full["baseline"]
    assert frozen["changes"]["optimizer_state"] < 0
    assert "0.5 M instead of 11.7 M trainable parameters" in frozen["why"][0]
    assert len(Path("plan.csv").read_text().splitlines()) == 3


@pytest.mark.virtual
def test_the_answer_of_a_search_is_handed_on_as_a_program_and_a_run(vramscope):
    ran = vramscope(*RESNET, "--memory", "700MiB", "--fit", "batch", "--emit", "fit.py", "--json", "plan.json", "-o", "fit.vram")  # fmt: skip

    assert ran.status == 0, ran.err
    (fit,) = json.loads(Path("plan.json").read_text())["fits"]
    assert fit["fails_at"] == fit["largest"] + 1
    assert f"BATCH, IMAGE, STEPS = {fit['largest']}, 64, 3" in Path("fit.py").read_text()
    assert load_run("fit.vram").report.peaks.process_total_bytes == fit["ends"]["process_total_bytes"]
    assert f"batch {fit['largest']} ends" in " ".join(ran.out.split())


@pytest.mark.virtual
def test_a_margin_is_free_on_the_card_as_it_is(vramscope):
    vramscope(*RESNET, "--memory", "700MiB", "--fit", "batch", "--margin", "20%", "--json", "plan.json")

    told = json.loads(Path("plan.json").read_text())
    (fit,), (row,) = told["fits"], told["rows"]
    room = fit["margin_bytes"]
    assert room == round(0.2 * 700 * MIB)
    assert row["result"]["process_total_bytes"] == fit["ends"]["process_total_bytes"] <= 700 * MIB - room
    assert row["result"]["retries"] == 0
    assert fit["fails"]["verdict"] == "does not fit"


@pytest.mark.virtual
def test_a_second_time_nothing_is_run_again(vramscope):
    words = (*RESNET, "--batch", "8", "--vary", "optimizer=sgd,adamw", "--out", "plan.db")
    vramscope(*words)

    again = vramscope(*words)

    assert "2 of them known from an earlier run" in " ".join(again.out.split())


@pytest.mark.virtual
def test_what_fits_nowhere_is_status_3_and_says_what_it_needs(vramscope):
    ran = vramscope(*RESNET, "--batch", "512", "--memory", "600MiB")

    assert ran.status == 3
    assert "does not fit, needs" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("timm", "--gpu", "t4"), "'timm' names no model: write timm/NAME"),
        (("timm/resnet18", "--batch", "0"), "batch must be at least 1"),
        (("timm/resnet18", "--batch", "-3"), "batch must be at least 1"),
        (("timm/resnet18", "--image", "big"), "image must be a whole number, not 'big'"),
        (("timm/resnet18", "--precision", "fp17"), "precision=fp17: there is no 'fp17'; did you mean fp16"),
        (("timm/resnet18", "--vary", "precision"), "--vary precision: write what to vary and its values"),
        (("timm/resnet18", "--vary", "precisoin=fp32"), "did you mean precision"),
        (("timm/resnet18", "--gpu", "rtx-3061"), "no card named 'rtx-3061'"),
        (("timm/resnet18", "--fit", "batch", "--cheapest"), "ask one at a time"),
        (("timm/resnet18", "--multiple-of", "8"), "--multiple-of goes with --fit"),
        (("timm/resnet18", "--fit", "batch", "--multiple-of", "0"), "--multiple-of 0: at least 1"),
        (("timm/resnet18", "--fit", "batch", "--vary", "batch=1,2"), "it cannot be varied too"),
        (("timm/resnet18", "--budget", "4GiB", "--vary", "batch=1,2"), "leave --vary away"),
        (("timm/resnet18", "--budget", "0"), "'0' is not a size"),
        (
            ("timm/resnet18", "--margin", "100%", "--fit", "batch"),
            "a margin of 100% leaves nothing of the card",
        ),
        (("timm/resnet18", "--used", "1TiB"), "--used leaves nothing of"),
        (("timm/resnet18", "--jobs", "0"), "--jobs 0: at least one cell"),
        (("timm/resnet18", "--cell", "2"), "--cell names the row for --emit and -o"),
        (("timm/resnet18", "--html", "nowhere/plan.html"), "there is no folder nowhere"),
    ],
)
def test_wrong_words_are_refused_before_anything_runs(vramscope, monkeypatch, words, said):
    monkeypatch.setattr("vramscope.planning.making.facts_of", lambda source: pytest.fail("it began to work"))

    ran = vramscope("plan", *words)

    assert ran.status == 2
    assert said in " ".join(ran.err.split())


@pytest.mark.virtual
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("timm/resnet5o", "did you mean resnet50"),
        ("torchvision/resnet5o", "did you mean"),
        ("hf/lama", "did you mean llama"),
        ("hf/llama?hiden_size=8", "did you mean hidden_size"),
        ("diffusers/UNet2DConditionModl", "UNet2DConditionModel"),
        ("hf/.", "config.json"),
    ],
)
def test_a_model_that_there_is_not_names_the_nearest(vramscope, source, said):
    ran = vramscope("plan", source, "--gpu", "t4")

    assert ran.status == 2
    assert said in " ".join(ran.err.split())


@pytest.mark.virtual
def test_the_row_that_is_handed_on_must_be_named_where_there_are_several(vramscope):
    ran = vramscope(*RESNET, "--batch", "8", "--vary", "optimizer=sgd,adamw", "--emit", "x.py")

    assert ran.status == 2
    assert "the table has several rows: name one with --cell N (1 to 2)" in ran.err


@pytest.mark.virtual
def test_from_python_any_executor_runs_the_cells():
    import vramscope

    with ThreadPoolExecutor(1) as executor:
        found = vramscope.plan(
            "timm/resnet18",
            "rtx-3060",
            image=64,
            batch=8,
            vary={"optimizer_impl": ["foreach", "for-loop"]},
            executor=executor,
        )

    _, loop = found.rows
    assert found.check() == ()
    assert found.varied == ("optimizer-impl",)
    assert loop.changes["temporary"] < 0
