"""`vramscope formula`, as it is typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from vramscope.cli import formula as module
from vramscope.cli import writing
from vramscope.errors import RunError, UsageError, VramscopeError
from vramscope.planning.result import FITS, Result
from vramscope.theory.held import Held

MODEL = Held(
    *("timm/resnet18", "ResNet", "rtx-3060", {"batch": "4", "precision": "fp32"}, 10, 10, (), (), (), (), 0),
    Result(FITS, 1 << 30, "", 1 << 20, 1 << 21, 1 << 22),
    *(None, None, ""),
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("VRAMSCOPE_JOURNAL", raising=False)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None, dict[str, str]]]:
    """The models that were asked for; none is run."""
    found: list[tuple[str, str | None, dict[str, str]]] = []

    def formula_model(source: str, gpu: str | None = None, *, knobs: dict[str, str]) -> Held:
        found.append((source, gpu, knobs))
        return MODEL

    monkeypatch.setattr(module.api, "formula_model", formula_model)
    return found


def run(*words: str) -> int:
    status = module.formula.main(list(words), prog_name="formula", standalone_mode=False)
    return status or 0


def test_the_sheet_shows_claims_beside_pytorch(capsys: pytest.CaptureFixture[str]):
    assert run("--params", "11e9") == 0
    told = capsys.readouterr().out

    assert "11,000,000,000 parameters" in told
    for word in ("40.98", "16A", "20A", "20x", "24x", "ZeRO-3, FSDP", "adamw-8bit-torchao", "by shape"):
        assert word in told


def test_a_sheet_as_json_alone(capsys: pytest.CaptureFixture[str]):
    run(
        "--params",
        "6.7B",
        "--tokens",
        "4k",
        "--gpu",
        "l4",
        "--ranks",
        "2",
        "--optimizer",
        "sgd",
        "--json",
        "-",
    )
    told = json.loads(capsys.readouterr().out)

    assert told["schema"] == "vramscope.formula/1"
    assert told["sheet"]["parameters"] == 6_700_000_000
    assert (told["sheet"]["ranks"], told["sheet"]["card"]) == (2, "l4")


def test_several_formulas_at_once(capsys: pytest.CaptureFixture[str]):
    run("lora:inputs=1024,outputs=512,rank=8", "dropout:elements=10")
    told = capsys.readouterr().out

    assert "12,288" in told
    assert "Dropout" in told


def test_the_list_has_all_with_their_figures(capsys: pytest.CaptureFixture[str]):
    run("--list", "--json", "list.json")
    told = capsys.readouterr().out

    from vramscope.theory.catalogue import BY_NAME

    assert all(f"\n  {name}\n" in told for name in BY_NAME)
    assert "kv_heads=0" in told
    assert len(json.loads(Path("list.json").read_text())["catalogue"]) == len(BY_NAME)


def test_a_models_knobs_are_those_of_plan(asked: Any, capsys: pytest.CaptureFixture[str]):
    words = (
        "--batch",
        "4",
        "--precision",
        "bf16",
        "--tune",
        "lora:8",
        "-s",
        "attention=eager",
        "--gpu",
        "rtx-3060",
    )
    assert run("--model", "timm/resnet18", *words) == 0
    told = capsys.readouterr().out

    knobs = {"batch": "4", "tune": "lora:8", "precision": "bf16", "attention": "eager"}
    assert asked == [("timm/resnet18", "rtx-3060", knobs)]
    assert "next            vramscope plan timm/resnet18 --gpu rtx-3060 --batch 4" in told
    assert "10 parameters, all of them train" in told


def test_the_next_command_exists(asked: Any, capsys: pytest.CaptureFixture[str]):
    from vramscope.cli.plan import plan

    run("--model", "timm/resnet18", "--batch", "4", "-s", "optimizer-impl=fused")
    command = capsys.readouterr().out.split("next")[1].split()

    assert command[:2] == ["vramscope", "plan"]
    plan.make_context("plan", command[2:])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "nothing was asked for: give one of --params 11e9"),
        (("--params", "1", "--list"), "--list and --params are several things"),
        (("--params", "1", "linear:inputs=1"), "--params and NAME:… are several things"),
        (("--params", "many"), "--params many: write a whole number"),
        (("--params", "0"), "0 parameters cannot be"),
        (("--params", "1", "--tokens", "x"), "--tokens x: write a whole number"),
        (("--params", "1", "--batch", "4"), "--batch goes with --model, not with --params"),
        (("--params", "1", "-s", "seq=4"), "-s goes with --model, not with --params"),
        (("--model", "a", "--ranks", "4"), "--ranks goes with --params, not with --model"),
        (("--list", "--gpu", "l4"), "--gpu goes with --params and --model, not with --list"),
        (("--params", "1", "--gpu", "l5"), "no card named 'l5'"),
        (("--params", "1", "--optimizer", "adam8"), "no formula for the optimizer 'adam8'"),
        (("--model", "a", "-s", "seq"), "-s seq: write a knob of `plan` and its position"),
        (("linaer",), "no formula is called 'linaer': did you mean linear"),
        (("--params", "1", "--json", "nowhere/x.json"), "there is no folder nowhere"),
    ],
)
def test_wrong_usage_says_what_to_try(words: tuple[str, ...], told: str):
    with pytest.raises(UsageError) as error:
        run(*words)

    assert error.value.exit_code == 2
    assert told in str(error.value)


@pytest.mark.parametrize("words", [("--params",), ("--ranks", "0"), ("--paramz", "4")])
def test_wrong_options_are_status_2(words: tuple[str, ...]):
    with pytest.raises(click.UsageError) as error:
        run(*words)

    assert error.value.exit_code == 2


def test_a_file_that_cannot_be_written_is_said(monkeypatch: pytest.MonkeyPatch):
    def full(path: Path) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "replacing", full)
    with pytest.raises(
        RunError, match=r"cannot write x\.json: No space left on device; choose another place"
    ):
        run("--params", "1", "--json", "x.json")


def test_within_another_run_no_model_is_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VRAMSCOPE_JOURNAL", "x")
    with pytest.raises(VramscopeError, match="asked to be predicted itself"):
        run("--model", "timm/resnet18")


def test_neither_help_nor_the_sheet_imports_torch():
    code = """
import sys
from vramscope.cli.formula import formula
for words in (["--help"], ["--params", "7e9", "--gpu", "l4", "--tokens", "10"], ["--list"], ["dropout:elements=1"]):
    try:
        formula.main(words, standalone_mode=False)
    except SystemExit:
        pass
    assert words != ["--help"] or "numpy" not in sys.modules, "--help imported numpy"
assert not {"torch", "timm", "transformers"} & set(sys.modules), "too much was imported"
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
