"""`vramscope explain`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import builders
from asking import segments_with
from traces import Story, training_story
from vramscope.run.run import Run
from vramscope.run.store import save_run


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs in the current folder: one, the same with expandable segments, one of a report alone, an empty one."""
    monkeypatch.chdir(tmp_path)
    run = Run(builders.trained(), traces=(training_story().trace(),))
    story = Story().span("forward", 1)
    story.alloc(100 << 10, "activation")
    other = segments_with(story.trace(), expandable=np.ones(1, bool))
    save_run("train.vram", run)
    save_run("expandable.vram", replace(run, traces=(other,)))
    save_run("report.vram", replace(run, traces=()))
    save_run("empty.vram", Run(None, origin="imported"))
    return tmp_path


def test_explain(vramscope, saved):
    ran = vramscope("explain", "train.vram")

    assert (ran.status, ran.err) == (0, "")
    assert "  What is the peak of 98.5 KiB made of?\n" in ran.out
    assert "  Why is step 1 24.0 KiB lower than step 2?\n" in ran.out
    assert "not known until a run with it is given (--with RUN)" in " ".join(ran.out.split())
    assert max(map(len, ran.out.splitlines())) <= 100


def test_another_run_tells_what_it_saves(vramscope, saved):
    ran = vramscope("explain", "train.vram", "--with", "report.vram", "--with", "expandable.vram")

    words = " ".join(ran.out.split())
    assert "expandable_segments:True: −109 KiB of peak reserved (another run shows it)" in words


def test_as_json(vramscope, saved):
    ran = vramscope("explain", "--json", "train.vram")

    found = json.loads(ran.out)
    assert (ran.status, ran.err, found["schema"]) == (0, "", "vramscope.explain/1")
    assert {"peak", "reserved", "outside", "first_step"} <= {each["key"] for each in found["findings"]}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("report.vram", "no history of the allocator is in the run"),
        ("empty.vram", "there is nothing to explain in this run"),
    ],
)
def test_what_a_run_cannot_tell_is_said(vramscope, saved, name: str, words: str):
    ran = vramscope("explain", name)

    assert ran.status == 0
    assert words in " ".join(ran.out.split())
    assert "not known" in ran.out


@pytest.mark.parametrize("words", [("missing.vram",), ("train.vram", "--with", "missing.vram")])
def test_a_run_that_is_not_there(vramscope, saved, words: tuple[str, ...]):
    ran = vramscope("explain", *words)

    assert ran.status == 2
    assert "error: cannot read missing.vram: No such file or directory" in ran.err


def test_a_run_has_to_be_named(vramscope, saved):
    ran = vramscope("explain")

    assert ran.status == 2
    assert "Missing argument 'RUN'" in ran.err
