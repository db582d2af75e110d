"""The report's sentences, one by one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from builders import (
    GIB,
    MAIN,
    PROCESS,
    REPORTS,
    TORCH,
    ACard,
    a_report,
    end,
    oom,
    span,
    step,
    trained,
    training,
)  # fmt: skip
from vramscope.run.report import Figure, Stopped
from vramscope.views import words


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "trained",
            "fits NVIDIA GeForce RTX 3060: peak 8.32 of 11.76 GiB, 3.44 GiB free; "
            "highest in backward, step 2",
        ),
        (
            "out_of_memory",
            "does not fit NVIDIA GeForce RTX 3060: out of memory in backward, step 2; "
            "needs at least 12.50 of 11.76 GiB",
        ),
        (
            "need_of_a_bigger_card",
            "does not fit NVIDIA GeForce RTX 3060: needs about 8.32 of 6.00 GiB; highest in backward, step 2",
        ),
        (
            "nothing_recorded",
            "unknown whether it fits NVIDIA GeForce RTX 3060: the program put nothing on the card",
        ),
        (
            "cut_in_the_first_step",
            "unknown whether it fits NVIDIA GeForce RTX 3060: the program broke off within its first step; "
            "until then peak 0.30 of 11.76 GiB",
        ),
        (
            "on_two_cards",
            "fits 2 × NVIDIA GeForce RTX 3060: peak 3.65 of 11.76 GiB, 8.11 GiB free; "
            "highest in forward, step 1, cuda:1",
        ),
    ],
)
def test_verdict(name: str, sentence: str):
    assert words.verdict(REPORTS[name]()) == sentence


def test_out_of_memory_whose_need_is_unknown():
    report = a_report([*training(1), oom(2, used_bytes=None), end("oom", 1)], status=1)

    assert words.verdict(report).endswith("out of memory in backward, step 2; what it needs is unknown")


def test_out_of_memory_below_the_cards_memory():
    report = a_report([*training(1), oom(2, used_bytes=GIB), end("oom", 1)], status=1)

    assert "at a limit below the card's memory" in words.verdict(report)


@pytest.mark.parametrize(
    ("stopped", "sentence"),
    [
        (Stopped("steps", 3, 0, False), "stopped after 3 steps"),
        (Stopped("steps", 1, 0, False), "stopped after 1 step"),
        (Stopped("finished", 12, 0, False), "ran to its end, 12 steps"),
        (Stopped("finished", 0, 0, False), "ran to its end"),
        (Stopped("finished", 0, 5, False), "ran to its end, exit status 5"),
        (Stopped("exception", 0, 1, True), "crashed, exit status 1"),
        (
            Stopped("exception", 0, 1, True, "train.py:7 in main"),
            "crashed at train.py:7 in main, exit status 1",
        ),
        (Stopped("oom", 0, 1, True), "out of memory"),
        (Stopped("interrupted", 1, -2, True), "interrupted: partial"),
        (Stopped("signal", 1, -9, True), "killed by SIGKILL: partial"),
        (Stopped("signal", 1, -99, True), "killed by signal 99: partial"),
        (Stopped("exit", 1, 4, True), "left without an end (os._exit), exit status 4: partial"),
    ],
)
def test_stopped(stopped: Stopped, sentence: str):
    assert words.stopped(stopped) == sentence


def test_steadiness():
    assert words.steadiness(trained()) == "steady from step 2 on"
    assert words.steadiness(a_report(training(2))) == "not steady: the peak still grew in step 2"
    assert words.steadiness(a_report(training(1))) == "one step only: whether a second needs more is unknown"
    assert words.steadiness(REPORTS["out_of_memory"]()) is None
    assert words.steadiness(REPORTS["on_two_cards"]()) is None


@pytest.mark.parametrize(
    ("name", "caution"),
    [
        ("killed", "partial: killed by SIGKILL; what comes later is not in these figures"),
        ("troubled", "1 line of the journal could not be read"),
        ("close", "close: with what is outside the allocator at its upper end it might not fit"),
        ("caught_out_of_memory", "the program ran out of memory in backward, step 1 and went on"),
    ],
)
def test_cautions(name: str, caution: str):
    assert words.cautions(REPORTS[name]()) == [caution]


def test_a_quiet_run_has_no_cautions():
    assert words.cautions(trained()) == []


def test_processes_that_share_a_card():
    report = a_report([*training(), span(1, "other", 100, 200, pid=7), end("steps", 3)])

    sentence = "2 processes hold memory on one card: the process total is of all, the other figures of one"
    assert words.cautions(report) == [sentence]


def test_cache_that_a_full_card_would_get_back():
    """8.15 GiB reserved and 2 GiB allocated: without a limit the allocator returned nothing."""
    entries = [span(1, "forward", 2048, 8350), step(1), end("steps", 1)]
    report = a_report(entries, capacity_bytes=None, card=ACard(memory_bytes=6 * GIB))

    assert report.verdict == "does not fit"
    assert "without --memory unlimited it might fit" in words.cautions(report)[0]


def test_sizes_that_are_not_known():
    assert words.gib(None) == "unknown"
    assert words.size_text(None) == "unknown"
    report = a_report([{"pid": MAIN, "kind": "uncounted", "what": "a plan", "bytes": None, "note": None}])
    assert [words.figure(item) for item in report.uncounted] == ["a plan of unknown size"]


def test_a_full_card_that_made_the_allocator_give_its_cache_back_is_named():
    entries = training(1)
    entries[4]["devices"][0]["retries"] = 2
    entries[5]["devices"][0]["retries"] = 1

    report = a_report([*entries, end("steps", 1)])

    assert [(r.step, r.phase, r.count) for r in report.retries] == [(1, "backward", 2), (1, "optimizer_step", 1)]
    assert any(
        sentence.startswith("the card was full in backward, step 1") and "(3 in all)" in sentence
        for sentence in words.cautions(report)
    )


def test_a_fit_that_another_driver_would_not_give_is_close():
    @dataclass(frozen=True)
    class Varying(ACard):
        memory_low_bytes: int | None = 12_400_000_000

    assert any("some drivers report only 11.55 GiB" in each for each in words.cautions(a_report(
        [PROCESS, TORCH, span(1, "forward", 11_000, 11_670), end("finished", 0)], card=Varying()
    )))  # fmt: skip
    assert not words.cautions(trained())


def test_a_choice_from_a_model_has_no_size():
    assert words.modelled(Figure("cudnn.benchmark", None, "plans are ranked")) == "cudnn.benchmark, plans are ranked"
    assert words.modelled(Figure("work space", 2**20)) == "work space 1.00 MiB"
