"""`vramscope show`: which parts come, of which trace, as text and as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import builders
from traces import Story, training_story
from vramscope.run.run import Run
from vramscope.run.store import save_run
from vramscope.views.report_json import from_json

HEADS = {
    "--stages": "stages by phase:",
    "--layers": "of activations kept for backward",
    "--peak": "by source line",
    "--lines": "were asked for over the run",
    "--timeline": "events from left to right",
}
TRAIN = """
import torch, vramscope
model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)).cuda()
vramscope.mark("model built")
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    loss = model(torch.randn(256, 512, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A predicted run, saved as a.vram in the current folder; b.vram has two processes, c.vram no history."""
    monkeypatch.chdir(tmp_path)
    trace = training_story().trace()
    found = Run(builders.trained(), traces=(trace,), name="train.py")
    save_run("a.vram", found)
    save_run("b.vram", replace(found, traces=(trace, replace(short(), pid=7, device=1))))
    save_run("c.vram", replace(found, traces=()))
    save_run("d.vram", training_story().run())
    return found


def short():
    story = Story().span("forward", 1)
    story.alloc(512, "activation", module="Other", line=99)
    return story.trace()


def test_the_report_and_what_the_peak_is_made_of(vramscope, run: Run):
    ran = vramscope("show", "a.vram")

    assert ran.status == 0
    assert ran.out.startswith("\n  fits NVIDIA GeForce RTX 3060")
    assert "at the peak     activations 48.5 · optimizer states 24.0" in ran.out
    assert ran.out.endswith("\n\n") and not ran.out.endswith("\n\n\n")


@pytest.mark.parametrize("flag", HEADS)
def test_a_view(vramscope, run: Run, flag: str):
    ran = vramscope("show", "a.vram", flag)

    assert ran.status == 0
    assert ran.out.startswith("\n  ")
    assert HEADS[flag] in ran.out
    assert not any(HEADS[other] in ran.out for other in HEADS if other != flag)
    assert "fits NVIDIA" not in ran.out


def test_views_come_in_one_order_whatever_is_asked_first(vramscope, run: Run):
    out = vramscope("show", *reversed(HEADS), "a.vram").out

    places = [out.index(head) for head in HEADS.values()]
    assert places == sorted(places)
    assert "\n\n\n" not in out


def test_a_depth_asks_for_layers_and_a_moment_for_the_peak(vramscope, run: Run):
    assert "Net  " in vramscope("show", "a.vram", "--depth", "0").out
    assert "    a  " not in vramscope("show", "a.vram", "--depth", "0").out
    assert "at moment 9 allocated" in vramscope("show", "a.vram", "--at", "9").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.vram", "--at", "9999"], "there is no moment 9999: the run has 0 to"),
        (["b.vram", "--device", "4"], "nothing of cuda:4; it has process 1 on cuda:0, process 7 on cuda:1"),
        (["b.vram", "--process", "9", "--peak"], "nothing of process 9;"),
        (["a.vram", "--depth", "-1"], "-1 is not in the range x>=0"),
        (["e.vram"], "cannot read e.vram"),
    ],
)
def test_what_cannot_be_shown_is_said(vramscope, run: Run, words: list[str], message: str):
    ran = vramscope("show", *words)

    assert ran.status == 2
    assert ran.out == ""
    assert message in ran.err


def test_of_several_processes_the_fullest_is_shown(vramscope, run: Run):
    ran = vramscope("show", "b.vram", "--lines")

    assert (
        "process 1 on cuda:0; also recorded: process 7 on cuda:1 (512 B) (--device N, --process PID)"
        in ran.out
    )
    assert "train.py:10 in main" in ran.out


@pytest.mark.parametrize("words", [("--device", "1"), ("--process", "7")])
def test_another_one(vramscope, run: Run, words: tuple[str, str]):
    ran = vramscope("show", "b.vram", "--lines", *words)

    assert "process 7 on cuda:1; also recorded: process 1 on cuda:0" in ran.out
    assert "train.py:99 in main" in ran.out
    assert "train.py:10 in main" not in ran.out


def test_a_run_without_a_history_has_its_report_alone(vramscope, run: Run):
    assert "fits NVIDIA" in vramscope("show", "c.vram").out

    ran = vramscope("show", "c.vram", "--peak", "--stages")
    assert ran.status == 0
    assert "so there is no --stages, --peak" in " ".join(ran.out.split())


def test_an_imported_run_has_no_report(vramscope, run: Run):
    ran = vramscope("show", "d.vram")

    assert "story (imported): allocated peak 98.5 KiB in backward, step 2" in ran.out
    assert "recorded        " in ran.out


def test_json_without_a_view_is_the_report(vramscope, run: Run):
    assert from_json(vramscope("show", "--json", "a.vram").out) == run.report


def test_json_of_an_imported_run_is_its_summary(vramscope, run: Run):
    found = json.loads(vramscope("show", "--json", "d.vram").out)

    assert (found["schema"], found["name"], found["origin"]) == ("vramscope.show/1", "story", "imported")
    assert found["summary"]["peak"]["allocated_bytes"] == found["summary"]["trace"]["peak_allocated_bytes"]


def test_json_of_views(vramscope, run: Run):
    found = json.loads(vramscope("show", "--json", "a.vram", *HEADS).out)

    assert list(found) == [
        *("schema", "name", "origin", "process", "device"),
        *("stages", "layers", "peak", "lines", "timeline"),
    ]
    peak = found["peak"]
    assert peak["cached_bytes"] == peak["reserved_bytes"] - peak["allocated_bytes"]
    assert peak["process_total_bytes"] == peak["reserved_bytes"] + run.report.outside.bytes
    assert sum(each["size_bytes"] for each in peak["categories"]) == peak["allocated_bytes"]
    assert [child["path"] for child in found["layers"]["roots"][0]["children"]] == ["Net.a", "Net.b", "Net.c"]
    assert max(found["timeline"]["allocated"]) == peak["allocated_bytes"]
    assert found["stages"]["stretches"][1]["kind"] == "steady"
    assert found["lines"]["rows"][0]["where"] == "train.py:10 in main"


def test_json_says_null_for_what_is_not_known(vramscope, run: Run):
    found = json.loads(vramscope("show", "--json", "c.vram", "--peak").out)
    assert (found["process"], found["peak"]) == (None, None)

    found = json.loads(vramscope("show", "--json", "d.vram", "--peak").out)
    assert found["peak"]["process_total_bytes"] is None


@pytest.mark.virtual
def test_a_recorded_run(vramscope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a small program needs by arithmetic is what the views of its run show."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(TRAIN)
    words = [sys.executable, "-m", "vramscope", "predict", "--gpu", "rtx-3060", "-o", "a.vram", "train.py"]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    weights = 4 * (512 * 1024 + 1024 + 1024 * 10) + 512  # the last bias, 40 bytes, takes a block of 512

    found = json.loads(vramscope("show", "--json", "a.vram", "--layers", "--stages").out)
    (root,) = found["layers"]["roots"]
    assert root["total"]["parameters"] == root["total"]["trainable"] == 512 * 1024 + 1024 + 10240 + 10
    assert root["total"]["weight_bytes"] == weights
    assert root["total"]["optimizer_state_bytes"] >= 2 * weights
    assert [stage["name"] for stage in found["stages"]["stretches"][0]["stages"]] == ["model built", ""]
    assert found["stages"]["stretches"][0]["stages"][0]["allocated_bytes"] == weights

    text = vramscope("show", "a.vram", *HEADS).out
    assert "train.py:7 in <module>" in text
    assert "▴model built" in text
