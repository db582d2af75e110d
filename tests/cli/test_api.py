"""`vramscope.predict`: what it asks for and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import builders
import vramscope
from vramscope import api
from vramscope.errors import SizeError, UnknownCardError, UsageError
from vramscope.run.report import UNLIMITED_BYTES


def job() -> None:
    """A function that another process can import."""


def test_a_script_and_its_arguments(machine, script):
    report = vramscope.predict("train.py", "rtx-3060", arguments=["--lr", 1])

    asked = machine.asked[0]
    assert report.verdict == "fits"
    assert report.program == ("train.py", "--lr", "1")
    assert (asked["program"].kind, asked["program"].target) == ("script", "train.py")
    assert asked["program"].arguments == ("--lr", "1")
    assert (asked["devices"], asked["memory_bytes"], asked["steps"], asked["assume"]) == (1, None, 3, "")
    assert asked["environment"] is None


def test_every_setting(machine, script):
    vramscope.predict(
        Path("train.py"),
        "rtx-3060",
        gpus=2,
        memory="unlimited",
        steps="all",
        assume={"nonzero": 0.5, "bool": False},
        environment={"A": "b"},
    )

    asked = machine.asked[0]
    assert (asked["devices"], asked["memory_bytes"], asked["steps"]) == (2, UNLIMITED_BYTES, None)
    assert asked["assume"] == "nonzero=0.5;bool=False"
    assert asked["environment"] == {"A": "b"}


def test_eager_loading_is_read_from_the_programs_environment(
    machine, script, monkeypatch: pytest.MonkeyPatch
):
    seen = []
    monkeypatch.setattr(
        "vramscope.virtual.setting.outside_of", lambda card, eager=False: seen.append(eager) or builders.OUTSIDE
    )

    vramscope.predict("train.py", "rtx-3060", environment={"CUDA_MODULE_LOADING": "EAGER"})
    vramscope.predict("train.py", "rtx-3060", environment={})

    assert list(dict.fromkeys(seen)) == [True, False]


def test_a_function_has_its_folder_while_it_runs(machine):
    there = []
    machine.during = lambda program: there.append(
        sorted(p.name for p in Path(program.target).parent.iterdir())
    )

    report = vramscope.predict(job, "rtx-3060")

    assert there == [["call.json", "call.py", "function.pickle"]]
    assert not Path(machine.asked[0]["program"].target).exists()
    assert report.program == ("job()",)


def test_a_program_that_crashes_is_no_error(machine, script):
    machine.journal, machine.status = [builders.PROCESS, builders.end("exception", 0)], 1

    assert vramscope.predict("train.py", "rtx-3060").verdict == "unknown"


def test_the_need_without_a_limit(machine, script):
    machine.journal = [*builders.training(base=30_000), builders.end("steps", 3)]

    report = vramscope.predict("train.py", "rtx-3060", memory="unlimited")

    assert (report.capacity_bytes, report.verdict) == (None, "does not fit")


@pytest.mark.parametrize(
    ("target", "how", "kind", "message"),
    [
        ("missing.py", {}, UsageError, "no such script: missing.py"),
        (3, {}, UsageError, "takes a path or a function of no arguments, not 3"),
        ("train.py", {"gpu": "rtx-9999"}, UnknownCardError, "no card named 'rtx-9999'"),
        ("train.py", {"memory": "lots"}, SizeError, "'lots' is not a size"),
        ("train.py", {"memory": 0}, UsageError, "a card of 0 bytes cannot be"),
        ("train.py", {"steps": 0}, UsageError, "0 is no number of steps"),
        ("train.py", {"steps": "few"}, UsageError, "'few' is no number of steps"),
        ("train.py", {"gpus": 65}, UsageError, "65 cards cannot be: 1 to 64"),
        ("train.py", {"assume": {"nonsense": 1}}, UsageError, "nothing called 'nonsense' is assumed"),
        ("train.py", {"assume": "nonsense=1"}, UsageError, "nothing called 'nonsense' is assumed"),
    ],
)
def test_what_makes_no_sense(machine, script, target, how, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        vramscope.predict(target, **{"gpu": "rtx-3060", **how})
    assert machine.asked == []


def test_a_prediction_within_one_is_refused(machine, script, monkeypatch: pytest.MonkeyPatch):
    """A script without a guard, run again for its function, would start itself for ever."""
    monkeypatch.setenv("VRAMSCOPE_JOURNAL", "/proc/1/fd/9")

    with pytest.raises(UsageError, match=re.escape('put the call under `if __name__ == "__main__":`')):
        vramscope.predict("train.py", "rtx-3060")


def test_the_most_cards_are_those_of_the_native_header():
    header = Path(api.__file__).parents[1] / "virtual" / "native" / "vs.h"

    assert f"#define VS_MAX_DEVICES {api.MOST_GPUS}\n" in header.read_text(encoding="utf-8")
