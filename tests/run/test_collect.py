"""From journals to reports: stories that can be replayed by hand.  Sizes in MiB."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    GIB,
    MAIN,
    MIB,
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
)
from vramscope.run.report import Assumed, Figure, Highest, Peaks, Report, Unsimulated, Waiting


def peaks(allocated: int, reserved: int, total: int) -> Peaks:
    return Peaks(allocated * MIB, reserved * MIB, total * MIB)


def test_a_training_run():
    report = trained()

    assert report.peaks == peaks(7150, 8350, 8520)
    assert [each.peaks for each in report.steps] == [peaks(7000, 8200, 8370)] + [peaks(7150, 8350, 8520)] * 2
    assert [each.phase for each in report.steps] == ["backward"] * 3
    assert report.highest == Highest("backward", 2, 0)
    assert report.steady_from == 2
    assert (report.verdict, report.needs_bytes) == ("fits", 8520 * MIB)
    assert report.versions.torch == "2.14.1+cu130"
    assert report.versions.python == "3.11.7"


@pytest.mark.parametrize("name", REPORTS)
def test_sums_close(name: str):
    assert REPORTS[name]().check() == ()


def test_sums_that_do_not_close_are_named():
    report = trained()
    wrong = replace(report, steps=(replace(report.steps[0], peaks=peaks(9000, 8400, 8520)),))

    assert wrong.check() == (
        f"step 1: allocated {9000 * MIB} > reserved {8400 * MIB}",
        f"step 1: reserved {8400 * MIB} + outside {170 * MIB} > process total {8520 * MIB}",
    )
    assert replace(report, peaks=peaks(1, 2, 172)).check()[0].startswith("device 0: process total")


# ---- steps -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("totals", "steady"),
    [
        ([5], None),
        ([5, 5], 1),
        ([5, 6], None),
        ([5, 6, 6], 2),
        ([6, 5, 5], 1),
        ([5, 6, 5, 7], None),
        ([5, 7, 6, 7], 2),
    ],
)
def test_steady(totals: list[int], steady: int | None):
    entries = [
        entry for n, size in enumerate(totals, 1) for entry in (span(n, "forward", size, size), step(n))
    ]

    assert a_report(entries).steady_from == steady


def test_what_runs_after_the_last_step_is_no_whole_step():
    report = a_report([*training(2), span(3, "other", 100, 8350), end("finished", 2)])

    assert [each.complete for each in report.steps] == [True, True, False]
    assert report.stopped.steps == 2
    assert report.verdict == "fits"


def test_nothing_recorded_is_unknown_and_not_zero():
    report = a_report([PROCESS, span(1, "other", 0, 0, outside=0), end("finished", 0)])

    assert report.verdict == "unknown"
    assert report.peaks == Peaks(None, None, None)
    assert report.needs_bytes is None
    assert report.steps == ()


# ---- cards and processes ---------------------------------------------------------------


def test_the_fullest_card_decides():
    report = REPORTS["on_two_cards"]()

    assert [(each.device, each.processes) for each in report.devices] == [(0, 1), (1, 2)]
    assert report.peaks.process_total_bytes == (900 + 170 + 2500 + 170) * MIB
    assert report.highest == Highest("forward", 1, 1)


def test_torchs_peaks_are_of_one_process():
    report = a_report([span(1, "forward", 100, 200), span(1, "forward", 150, 180, pid=7)])

    assert report.peaks == peaks(150, 200, 200 + 180 + 2 * 170)


def test_the_machines_books_know_what_was_held_at_one_time():
    """Two that follow one another: their peaks would add up to more than there is."""
    entries = [span(1, "forward", 8000, 9000), span(1, "forward", 8000, 9000, pid=7)]

    assert a_report(entries, machine_peaks=[9300 * MIB]).peaks == peaks(8000, 9000, 9300)
    assert a_report(entries).peaks == peaks(8000, 9000, 2 * 9170)


def test_the_machines_books_know_of_the_killed():
    """Killed in a stretch that took more than all before it, or before any was written down."""
    report = a_report(training(1), status=-9, machine_peaks=[11_000 * MIB, 0])
    early = a_report([PROCESS], status=-9, machine_peaks=[0, 500 * MIB])

    assert report.peaks == peaks(7000, 8200, 11_000)
    assert report.highest is None
    assert early.peaks == Peaks(None, None, 500 * MIB)
    assert [(each.device, each.processes) for each in early.devices] == [(1, None)]
    assert early.verdict == "unknown"
    assert [*report.check(), *early.check()] == []


def test_steps_are_those_of_the_leading_process():
    report = a_report([*training(2), span(1, "other", 100, 200, pid=7), step(1, pid=7), end("steps", 2)])

    assert [each.peaks.process_total_bytes for each in report.steps] == [8370 * MIB, 8520 * MIB]


# ---- endings ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "status", "how", "partial"),
    [
        ([end("steps", 3)], 0, "steps", False),
        ([end("finished", 3)], 5, "finished", False),
        ([end("exception", 3)], 1, "exception", True),
        ([end("interrupted", 3)], -2, "interrupted", True),
        ([], -9, "signal", True),
        ([], 0, "exit", True),
        ([end("steps", 3)], -11, "steps", False),
        ([{"pid": MAIN, "kind": "end", "how": 7}], -9, "signal", True),
    ],
)
def test_endings(entries: list[dict[str, object]], status: int, how: str, partial: bool):
    report = a_report([*training(3), *entries], status=status)

    assert (report.stopped.how, report.stopped.partial, report.stopped.steps) == (how, partial, 3)
    assert report.verdict == "fits"


def test_broken_off_within_the_first_step_proves_nothing():
    assert REPORTS["cut_in_the_first_step"]().verdict == "unknown"


def test_out_of_memory():
    report = REPORTS["out_of_memory"]()

    assert report.verdict == "does not fit"
    assert report.needs_bytes == 12 * GIB + 512 * MIB
    assert report.oom is not None
    assert (report.oom.where, report.oom.line, report.oom.caught) == (
        "train.py:41 in main",
        "loss.backward()",
        False,
    )


@pytest.mark.parametrize(
    ("after", "status", "caught"),
    [
        ([step(1), end("finished", 1)], 0, True),
        ([end("finished", 0)], 0, True),
        ([step(1), end("exception", 1)], 1, True),
        ([end("exception", 0)], 1, False),
        ([], 1, False),
        ([end("finished", 0)], 1, False),
        ([end("oom", 0)], 1, False),
        ([step(1), end("oom", 1)], 1, False),
        ([end("interrupted", 0)], 130, True),
    ],
)
def test_out_of_memory_that_the_program_lives_through(
    after: list[dict[str, object]], status: int, caught: bool
):
    report = a_report([span(1, "forward", 8000, 9000), oom(1), *after], status=status)

    assert report.oom is not None
    assert report.oom.caught == caught
    assert (report.verdict == "does not fit") == (not caught)


def test_without_a_limit_the_need_is_held_against_the_real_card():
    small, large = ACard(memory_bytes=8 * GIB), ACard(memory_bytes=9 * GIB)

    assert trained(card=small, capacity_bytes=None).verdict == "does not fit"
    assert trained(card=large, capacity_bytes=None).verdict == "fits"


# ---- what else is told -----------------------------------------------------------------


def told(kind: str, pid: int = MAIN, **fields: object) -> dict[str, object]:
    return {"pid": pid, "kind": kind, **fields}


def test_the_last_count_of_a_process_holds_and_processes_add():
    report = a_report(
        [
            told("assumed", what="nonzero", where="m.py:2", count=1, value="all"),
            told("assumed", what="nonzero", where="m.py:2", count=3, value="all of 8"),
            told("assumed", what="nonzero", where="m.py:2", count=2, value="all of 8", pid=7),
            told("assumed", what="nonzero", where=None, count=1, value="all"),
            told("assumed", what="float", where="m.py:3"),
        ]
    )

    assert report.assumed == (
        Assumed("nonzero", "m.py:2", 5, "all of 8"),
        Assumed("nonzero", None, 1, "all"),
        Assumed("float", "m.py:3", None, None),
    )


def test_one_line_of_each():
    report = a_report(
        [
            told("uncounted", what="plan", bytes=None, note="a note"),
            told("uncounted", what="plan", bytes=5),
            told("uncounted", what="plan", bytes=3),
            told("modelled", what="space", bytes=7, note=None),
            told("unsimulated", library="cufft", symbol="x", answer=16),
            told("unsimulated", library="cufft", symbol="x", answer=16, pid=7),
            told("unsimulated", library="cufft"),
            told("waiting", where="train.py:7"),
            told("waiting", where="train.py:7"),
        ]
    )

    assert report.uncounted == (Figure("plan", 5, "a note"),)
    assert report.modelled == (Figure("space", 7),)
    assert report.unsimulated == (Unsimulated("cufft", "x", 16),)
    assert report.waiting == (Waiting("train.py:7"),)


def test_what_could_not_be_read_is_counted():
    report: Report = a_report([TORCH, {"foreign": 1}, 3])  # type: ignore[list-item]

    assert report.damaged_lines == 2
