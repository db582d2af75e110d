"""`vramscope predict`, word by word."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

import builders
from vramscope.run.report import UNLIMITED_BYTES
from vramscope.run.store import load_run


def test_stdout_is_the_programs_alone(machine, script, vramscope):
    ran = vramscope("predict", "--gpu", "rtx-3060", "train.py")

    assert ran.status == 0
    assert ran.out == ""
    assert "fits NVIDIA GeForce RTX 3060: peak 8.32 of 11.76 GiB, 3.44 GiB free" in ran.err


def test_what_follows_the_script_is_the_programs(machine, script, vramscope):
    vramscope(
        "predict", "--gpu", "rtx-3060", "--steps=5", "train.py", "--gpu", "7", "-o", "x", "--", "-m", "y"
    )

    asked = machine.asked[0]
    assert asked["program"].target == "train.py"
    assert asked["program"].arguments == ("--gpu", "7", "-o", "x", "--", "-m", "y")
    assert asked["steps"] == 5


@pytest.mark.parametrize(
    ("words", "kind", "target", "arguments"),
    [
        (["-m", "pkg.train", "--steps", "9"], "module", "pkg.train", ("--steps", "9")),
        (["-mpkg.train", "-h"], "module", "pkg.train", ("-h",)),
        (["-c", "print(1)", "-c", "2"], "code", "print(1)", ("-c", "2")),
        (["--", "train.py", "--help"], "script", "train.py", ("--help",)),
        (["--", "-m", "pkg"], "module", "pkg", ()),
    ],
)
def test_programs_are_named_as_for_python(machine, script, vramscope, words, kind, target, arguments):
    ran = vramscope("predict", "--gpu", "rtx-3060", *words)

    program = machine.asked[0]["program"]
    assert ran.status == 0
    assert (program.kind, program.target, program.arguments) == (kind, target, arguments)


def test_every_setting_reaches_the_launch(machine, script, vramscope):
    words = ["--gpu", "rtx-3060", "--gpus", "2", "--memory", "8GiB", "--steps", "all"]

    vramscope("predict", *words, "--assume", "nonzero=0.5", "--assume", "bool=false", "train.py")

    asked = machine.asked[0]
    assert asked["card"].id == "rtx-3060"
    assert (asked["devices"], asked["memory_bytes"], asked["steps"]) == (2, 8 << 30, None)
    assert asked["assume"] == "nonzero=0.5;bool=false"


def test_unlimited_memory_is_held_against_the_cards(machine, script, vramscope):
    machine.journal = [*builders.training(base=30_000), builders.end("steps", 3)]

    ran = vramscope("predict", "--gpu", "rtx-3060", "--memory", "unlimited", "train.py")

    assert machine.asked[0]["memory_bytes"] == UNLIMITED_BYTES
    assert ran.status == 0
    assert "does not fit NVIDIA GeForce RTX 3060: needs about 30.78 of 11.76 GiB" in ran.err


def test_the_default_card_is_said(machine, script, vramscope):
    assert "taking NVIDIA GeForce RTX 4090 (--gpu rtx-4090)" in vramscope("predict", "train.py").err


def test_the_machines_own_card_comes_first(machine, script, vramscope):
    machine.real = "NVIDIA GeForce RTX 3060"

    assert "taking NVIDIA GeForce RTX 3060 (--gpu rtx-3060)" in vramscope("predict", "train.py").err


def test_a_real_card_that_no_catalogue_has_gives_way(machine, script, vramscope):
    machine.real = "Voodoo 2"

    assert "(--gpu rtx-4090)" in vramscope("predict", "train.py").err


# ---- exit status ---------------------------------------------------------------------


def test_the_programs_own_status(machine, script, vramscope):
    machine.journal, machine.status = [*builders.training(), builders.end("exception", 3)], 7

    ran = vramscope("predict", "--gpu", "rtx-3060", "train.py")

    assert ran.status == 7
    assert "crashed, exit status 7" in ran.err


def test_a_signal_is_128_more(machine, script, vramscope):
    machine.journal, machine.status = builders.training(), -signal.SIGKILL

    ran = vramscope("predict", "--gpu", "rtx-3060", "train.py")

    assert ran.status == 137
    assert "killed by SIGKILL: partial" in ran.err


def test_out_of_memory_is_3_and_names_the_way_on(machine, script, vramscope):
    machine.journal = [*builders.training(1), builders.oom(2), builders.end("oom", 1)]
    machine.status = 1

    ran = vramscope("predict", "--gpu", "rtx-3060", "--memory", "11GiB", "train.py", "--lr", "1")

    assert ran.status == 3
    assert "vramscope predict --gpu rtx-3060 --memory unlimited train.py --lr 1" in ran.err
    assert "2.00 GiB on cuda:0 in backward, step 2 at train.py:41 in main: loss.backward()" in ran.err


@pytest.mark.parametrize(("size", "status"), [("9GiB", 0), ("8520MiB", 0), ("8519MiB", 4)])
def test_the_gate(machine, script, vramscope, size, status):
    ran = vramscope("predict", "--gpu", "rtx-3060", "--fail-over", size, "train.py")

    assert ran.status == status
    assert ("over --fail-over 8.32 GiB by 1.00 MiB" in ran.err) == bool(status)


def test_a_gate_that_cannot_be_judged_is_not_passed(machine, script, vramscope):
    machine.journal = [builders.PROCESS, builders.end("finished", 0)]

    ran = vramscope("predict", "--gpu", "rtx-3060", "--fail-over", "9GiB", "train.py")

    assert ran.status == 4
    assert "--fail-over cannot be judged: the program put nothing on the card" in ran.err


def test_a_crash_is_not_hidden_by_the_gate(machine, script, vramscope):
    machine.status = 9

    assert vramscope("predict", "--gpu", "rtx-3060", "--fail-over", "1GiB", "train.py").status == 9


def test_interrupted(machine, script, vramscope):
    """Ctrl-C reaches parent and child; the parent waits for the child and reports."""
    machine.journal, machine.status = [*builders.training(2), builders.end("interrupted", 2)], -signal.SIGINT
    machine.during = lambda _program: os.kill(os.getpid(), signal.SIGINT)
    before = signal.getsignal(signal.SIGINT)

    ran = vramscope("predict", "--gpu", "rtx-3060", "train.py")

    assert ran.status == 130
    assert "partial: interrupted" in ran.err
    assert signal.getsignal(signal.SIGINT) is before


# ---- what is written ------------------------------------------------------------------


def test_json_to_a_file(machine, script, vramscope):
    vramscope("predict", "--gpu", "rtx-3060", "--json", "report.json", "train.py")

    document = json.loads(Path("report.json").read_text())
    assert document["schema"] == "vramscope.report/1"
    assert document["verdict"] == "fits"
    assert document["program"] == ["train.py"]


def test_json_to_stdout(machine, script, vramscope):
    ran = vramscope("predict", "--gpu", "rtx-3060", "--json", "-", "train.py")

    assert json.loads(ran.out)["peaks"]["process_total_bytes"] == 8520 << 20


def test_a_saved_run_is_shown_again(machine, script, vramscope):
    first = vramscope("predict", "--gpu", "rtx-3060", "-o", "train.vram", "train.py")
    again = vramscope("show", "train.vram")

    assert "vramscope show train.vram" in first.err
    assert again.status == 0
    assert again.out.split("\n  next")[0].strip() == first.err.split("\n  next")[0].strip()
    assert json.loads(vramscope("show", "--json", "train.vram").out)["card"]["id"] == "rtx-3060"


def test_what_is_saved_names_no_folder(machine, script, vramscope):
    machine.journal[0] = {**machine.journal[0], "argv": [str(script)]}
    deep = "/usr/lib/python3/site-packages/timm/x.py:3"
    machine.journal.append({"pid": 100, "kind": "assumed", "what": "nonzero", "where": deep, "count": 1})

    vramscope(
        "predict", "--gpu", "rtx-3060", "-o", "train.vram", str(script), str(script.parent / "data.csv")
    )

    run = load_run("train.vram")
    assert run.report.program == ("train.py", "data.csv")
    assert run.report.assumed[0].where == "timm/x.py:3"
    assert str(script.parent) not in repr(run)


def test_growth_to_the_end_names_a_longer_run(machine, script, vramscope):
    machine.journal = [*builders.training(2), builders.end("steps", 2)]

    ran = vramscope("predict", "--gpu", "rtx-3060", "--steps", "2", "train.py")

    assert "vramscope predict --gpu rtx-3060 --steps 8 train.py" in ran.err
