"""The commands that a report names exist and mean what they say."""

from __future__ import annotations

import shlex

import pytest

import builders
from vramscope.cli.follow import next_commands


def test_all_well_asks_for_nothing():
    assert next_commands(builders.trained(), "predict", ["--gpu", "rtx-3060"], ["train.py"], None) == ()


@pytest.mark.parametrize(
    ("own", "again"),
    [
        ([], "--memory unlimited"),
        (
            ["--gpu", "rtx-3060", "--memory", "8GiB", "--steps", "5"],
            "--gpu rtx-3060 --steps 5 --memory unlimited",
        ),
        (["--memory=8GiB"], "--memory unlimited"),
        (["-o", "a.vram", "--json", "-", "--gpu", "t4"], "--gpu t4 --memory unlimited"),
        (["-oa.vram", "--json=-", "--gpus", "2"], "--gpus 2 --memory unlimited"),
    ],
)
def test_the_need(own: list[str], again: str):
    commands = next_commands(builders.out_of_memory(), "predict", own, ["train.py", "--name", "a b"], None)

    assert commands == (f"vramscope predict {again} train.py --name 'a b'",)


def test_a_bigger_card():
    report = builders.REPORTS["need_of_a_bigger_card"]()

    assert next_commands(report, "predict", [], ["train.py"], "a.vram") == (
        *("vramscope gpus", "vramscope show a.vram --peak", "vramscope explain a.vram"),
    )


def test_a_script_whose_name_looks_like_an_option():
    (command,) = next_commands(builders.out_of_memory(), "predict", [], ["-x.py"], None)

    assert command.endswith("--memory unlimited -- -x.py")


def test_a_real_card_has_the_memory_that_it_has():
    assert next_commands(builders.out_of_memory(), "measure", [], ["train.py"], None) == ()


@pytest.mark.parametrize(
    "program", [["train.py", "-o", "x"], ["-m", "pkg", "--gpu"], ["-c", "print('a b')"], ["-x.py"]]
)
def test_each_can_be_run(machine, script, vramscope, program: list[str]):
    script.with_name("-x.py").write_text("")
    machine.journal = [*builders.training(1), builders.oom(2), builders.end("oom", 1)]
    vramscope("predict", "--gpu", "rtx-3060", "--", *program)
    commands = next_commands(builders.out_of_memory(), "predict", ["--gpu", "rtx-3060"], program, None)

    assert len(commands) == 1
    vramscope(*shlex.split(commands[0])[1:])

    first, second = (asked["program"] for asked in machine.asked)
    assert first == second
