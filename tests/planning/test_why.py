"""What a row holds more or less than the baseline."""

from __future__ import annotations

from vramscope.planning.result import FITS, Outcome, Result
from vramscope.planning.why import changes, reasons


def result(allocated: int, **categories: int) -> Result:
    return Result(FITS, 1 << 34, peak_allocated_bytes=allocated, categories=categories)


def test_changes_name_what_rose_and_fell_the_largest_first():
    before, after = (
        result(1000, activation=700, parameter=300),
        result(600, activation=200, parameter=300, input=100),
    )

    assert list(changes(before, after).items()) == [("activation", -500), ("input", 100)]


def test_a_change_below_half_a_percent_of_the_peak_is_none():
    assert changes(result(100_000, activation=100_000), result(100_400, activation=100_400)) == {}


def test_without_categories_nothing_is_said_to_have_changed():
    assert changes(result(1000), result(600, activation=600)) == {}


def test_without_runs_there_are_no_reasons():
    one = Outcome(result(10, activation=10))

    assert reasons(one, one) == ()
