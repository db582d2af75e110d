"""`vramscope lab train`, as it is typed: the trainings themselves are in tests/lab."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest
from rich.console import Console

from vramscope.cli.lab import EXPERIMENTS, lab
from vramscope.cli.lab_progress import scores_of, showing
from vramscope.cli.lab_train import train
from vramscope.errors import NoGpuError
from vramscope.lab.grid import FAILED, TRAINED, Epoch, Grid, Memory, Training
from vramscope.lab.training.progress import ENDED, EVALUATING, KNOWN, PREDICTING, TRAINING, Progress
from vramscope.lab.training.request import Request, request_of
from vramscope.views.grid_plots import NAMES

OPTIONS = [
    *("--model SOURCE", "--data DATA", "--size N", "--image N", "--precision P,P", "--tune T,T", "--batch N"),
    *("--epochs N", "--optimizer NAME", "--lr RATE", "--seed N", "--device DEVICE", "--gpu CARD"),
    *("--predict-batch N", "--predict-image N", "--out DB", "--again", "--workers N", "--data-root DIR"),
    *("--csv FILE", "--json FILE", "--plots DIR"),
]
DOCS = Path(__file__).parents[2] / "docs" / "lab-train.md"
TOLD = Progress(TRAINING, "fp32 · full", 1, 2, epoch=1, epochs=1, step=4, steps=4, loss=2.345, accuracy=0.25)


@dataclass
class Paper:
    """What the next grid is, and what was asked for."""

    verdict: str = TRAINED
    asked: list[Request] = field(default_factory=list)
    error: BaseException | None = None

    def train_grid(self, request: Request, progress: Callable[[Progress], None]) -> Grid:
        self.asked.append(request_of(request))
        progress(TOLD)
        if self.error is not None:
            raise self.error
        epochs = (Epoch(1, 4.7, 0.03, None, None, 9.0, 4),) if self.verdict == TRAINED else ()
        cells = tuple(
            Training(*place, self.verdict, epochs=epochs, predicted=Memory(1 << 30, 2 << 30, 3 << 30))
            for place in self.asked[-1].cells
        )
        return Grid("resnet18", "fake", "cpu", 16, 64, 1, "adam", 0, "rtx-3060", 90, 224, cells)


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Paper:
    made = Paper()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VRAMSCOPE_JOURNAL", raising=False)
    monkeypatch.setattr("vramscope.lab.training.making.train_grid", made.train_grid)
    monkeypatch.setattr("vramscope.cli.VERBS", ("lab",))
    return made


def test_each_experiment_is_a_command():
    context = click.Context(lab)

    assert [lab.get_command(context, name).name for name in EXPERIMENTS] == list(EXPERIMENTS)
    assert lab.get_command(context, "trian") is None


def test_every_option():
    assert [
        each.opts[0] + ("" if getattr(each, "is_flag", False) else f" {each.metavar}")
        for each in train.params
    ] == OPTIONS


def test_help(paper: Paper, vramscope):
    ran = vramscope("lab", "train", "--help")

    assert ran.status == 0
    assert all(words in ran.out for words in OPTIONS)
    assert max(map(len, ran.out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--help"], 0),
        (["--data", "folder:none"], 2),
    ],
)
def test_nothing_heavy_is_imported_for_help_or_wrong_words(tmp_path: Path, words: list[str], status: int):
    code = (
        "import sys; from vramscope.cli import status_of; "
        f"status = status_of(['lab', 'train', *{words!r}]); "
        "found = {'torch', 'timm', 'torchvision', 'transformers', 'matplotlib'} & set(sys.modules); "
        "assert not found, found; sys.exit(status)"
    )

    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)

    assert ran.returncode == status, ran.stderr


def test_without_options_it_is_the_six_cells_at_the_sizes_of_the_article(paper: Paper, vramscope):
    ran = vramscope("lab", "train")

    assert ran.status == 0, ran.err
    assert ran.err == ""
    assert "all 6 cells trained on cpu" in ran.out
    assert ran.out.splitlines()[-2].endswith("vramscope lab train --plots plots")
    (asked,) = paper.asked
    assert (asked.model, asked.data, asked.batch, asked.predicted_batch, asked.predicted_image) == (
        "resnet18",
        "fake",
        90,
        90,
        224,
    )
    assert asked.cells[0] == ("fp32", "full")


def test_what_is_asked_for_arrives(paper: Paper, vramscope):
    ran = vramscope(
        *("lab", "train", "--model", "torchvision/resnet18", "--data", "folder:x", "--size", "64", "--image", "96"),
        *("--precision", "bf16", "--tune", "full,article-lora", "--batch", "8", "--epochs", "3", "--optimizer", "sgd"),
        *("--lr", "0.5", "--seed", "7", "--device", "cpu", "--gpu", "t4", "--predict-batch", "12", "--out", "x.db"),
        *("--predict-image", "128", "--again", "--workers", "2", "--data-root", "here"),
    )  # fmt: skip

    assert ran.status == 0, ran.err
    assert paper.asked == [
        Request(
            *("torchvision/resnet18", "folder:x", 64, 96, ("bf16",), ("full", "article-lora"), 8, 3, "sgd"),
            *(0.5, 7, "cpu", "t4", 12, 128, "x.db", True, 2, "here"),
        )
    ]


def test_files_are_written_beside_the_table(paper: Paper, vramscope):
    pytest.importorskip("matplotlib")
    ran = vramscope("lab", "train", "--tune", "full", "--csv", "a.csv", "--json", "a.json", "--plots", "new")

    assert ran.status == 0, ran.err
    assert json.loads(Path("a.json").read_text())["schema"] == "vramscope.lab-train/1"
    assert len(Path("a.csv").read_text().splitlines()) == 3
    assert {path.name for path in Path("new").iterdir()} <= {*NAMES}
    assert Path("new/memory.png").stat().st_size > 10_000
    assert "next" not in ran.out


def test_on_stdout_there_is_only_what_was_asked_for(paper: Paper, vramscope):
    ran = vramscope("lab", "train", "--json", "-")

    assert json.loads(ran.out)["cells"][0]["precision"] == "fp32"


def test_status_1_if_no_cell_came_to_its_end(paper: Paper, vramscope):
    paper.verdict = FAILED

    ran = vramscope("lab", "train")

    assert ran.status == 1
    assert "none of 6 cells trained" in ran.out
    assert "next" not in ran.out


def test_an_interrupted_grid_says_that_what_is_finished_is_kept(paper: Paper, vramscope):
    paper.error = KeyboardInterrupt()

    ran = vramscope("lab", "train")

    assert ran.status == 130
    assert "interrupted; finished cells are kept" in ran.err


def test_what_the_floors_below_raise_is_a_message(paper: Paper, vramscope):
    paper.error = NoGpuError("--device cuda: there is no GPU")

    ran = vramscope("lab", "train", "--device", "cuda")

    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "vramscope: error: --device cuda: there is no GPU\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--plots", "nowhere/x"), "--plots nowhere/x: there is no folder nowhere"),
        (("--plots", "file"), "--plots file: it is a file; name a folder"),
        (("--csv", "nowhere/x.csv"), "there is no folder nowhere"),
        (("--predict-batch", "0"), "Invalid value for '--predict-batch'"),
        (("--batch", "0"), "--batch 0: it must be at least 1"),
        (("--lr", "-1"), "--lr -1: a learning rate is above 0"),
        (("--tune", "frieze:0.5"), "--tune frieze:0.5"),
        (("--precision", "fp8"), "--precision fp8"),
        (("--device", "tpu"), "--device tpu"),
        (("--gpu", "rtx-9999"), "no card named 'rtx-9999'"),
        (("--size", "0"), "--size 0: it must be at least 1"),
        (("--optimizer", "adma"), "did you mean adam"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_trained(paper: Paper, vramscope, words, said):
    Path("file").write_text("")

    ran = vramscope("lab", "train", *words)

    assert ran.status == 2
    assert said in " ".join(ran.err.split())
    assert paper.asked == []


def test_without_matplotlib_no_hours_are_lost(paper: Paper, vramscope, monkeypatch):
    monkeypatch.setattr("vramscope.views.grid_plots.find_spec", lambda name: None)

    ran = vramscope("lab", "train", "--plots", "x")

    assert ran.status == 2
    assert "pip install 'vramscope[plots]'" in ran.err
    assert paper.asked == []


def test_in_a_run_of_vramscope_nothing_is_trained(paper: Paper, vramscope, monkeypatch):
    monkeypatch.setenv("VRAMSCOPE_JOURNAL", "x")

    ran = vramscope("lab", "train")

    assert ran.status == 2
    assert "asked to be trained itself" in ran.err


def test_bars_leave_a_line_of_each_pass_and_each_cell():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, color_system=None)

    with showing(console) as tell:
        tell(Progress(PREDICTING, "fp32 · full", 1, 2))
        tell(Progress(TRAINING, "fp32 · full", 1, 2, epoch=1, epochs=1))
        tell(TOLD)
        tell(
            Progress(
                EVALUATING, "fp32 · full", 1, 2, epoch=1, epochs=1, step=1, steps=1, loss=3.0, accuracy=0.5
            )
        )
        tell(Progress(ENDED, "fp32 · full", 1, 2, epochs=1, verdict=TRAINED))
        tell(Progress(KNOWN, "fp32 · lora:4", 2, 2, epochs=1, verdict=TRAINED))  # fmt: skip

    shown = screen.getvalue()
    assert "fp32 · full, epoch 1, training: loss 2.35, accuracy 25.0 %" in shown
    assert "fp32 · full, epoch 1, evaluating: loss 3.00, accuracy 50.0 %" in shown
    assert "fp32 · full: trained" in shown
    assert "fp32 · lora:4: trained, known from an earlier run" in shown
    assert "predicting fp32 · full" in shown


def test_on_a_narrow_terminal_the_scores_are_whole():
    screen = io.StringIO()

    with showing(Console(file=screen, force_terminal=True, width=60, color_system=None)) as tell:
        tell(TOLD)
        tell(Progress(EVALUATING, "fp32 · full", 1, 2, epoch=1, epochs=1, step=1, steps=2, loss=3.0, accuracy=1.0))  # fmt: skip

    assert "loss 2.35, accuracy 25.0 %" in screen.getvalue()
    assert "…" not in screen.getvalue()


def test_before_the_first_step_there_are_no_scores():
    assert scores_of(Progress(TRAINING, "fp32 · full", 1, 2)) == ""


def test_every_command_of_the_page_is_one():
    blocks = re.findall(r"```console\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    commands = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]

    assert len(commands) >= 3
    for command in commands:
        program, group, verb, *words = shlex.split(command)
        assert (program, group, verb) == ("vramscope", "lab", "train")
        train.make_context("train", words)


def test_every_option_is_on_the_page():
    text = DOCS.read_text(encoding="utf-8")

    assert [words for words in OPTIONS if words.partition(" ")[0] not in text] == []
