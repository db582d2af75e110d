"""The search for the largest value: on made-up cards, and on the virtual one with the proof run as a program."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vramscope.errors import UsageError
from vramscope.planning.fit import fit
from vramscope.planning.result import DOES_NOT_FIT, FAILED, FITS, Failure, Result

CAPACITY = 24 * 10**9
POOL = ThreadPoolExecutor(2)


class Made:
    """A card on which a value takes what two functions say; it counts its runs."""

    def __init__(
        self,
        allocated: Callable[[int], float],
        total: Callable[[int], float] | None = None,
        fails: Callable[[int], str] = lambda value: "",
    ) -> None:
        self.allocated, self.total, self.fails = allocated, total or allocated, fails
        self.quick: list[int] = []
        self.followed: list[int] = []

    def __call__(self, value: int, followed: bool) -> Result:
        (self.followed if followed else self.quick).append(value)
        if why := self.fails(value):
            return Result(FAILED, CAPACITY, why)
        if self.allocated(value) > CAPACITY:
            return Result(DOES_NOT_FIT, CAPACITY, failure=Failure("forward", 1, "net", 1, None))
        total = self.total(value)
        return Result(
            FITS,
            CAPACITY,
            peak_allocated_bytes=int(self.allocated(value)),
            process_total_bytes=int(min(total, CAPACITY)),
            outside_bytes=0,
            retries=9 * int(total > CAPACITY),
        )


@pytest.mark.parametrize("pool", [None, POOL], ids=["alone", "pool"])
@given(end=st.integers(0, 1 << 20), shape=st.sampled_from([1, 2, 3]), start=st.integers(1, 1000))
@example(end=458834, shape=3, start=1)
@example(end=1014241, shape=3, start=1)
def test_any_end_is_found_exactly_and_with_few_runs(pool, end: int, shape: int, start: int):
    card = Made(lambda value: CAPACITY * (value / (end + 0.5)) ** shape)

    found = fit(card, start=start, least=1, most=1 << 20, pool=pool)

    assert (found.largest or 0) == end
    assert found.fails_at == (end + 1 if end < 1 << 20 else None)
    ups, halvings, guesses = 20, 20, 10
    assert len(card.quick) <= (ups + halvings + guesses) * (1 if pool is None else 2)


@given(
    steps=st.lists(st.integers(0, 30 * 10**9), min_size=2, max_size=400).map(sorted),
    start=st.integers(1, 400),
)
def test_memory_that_grows_in_any_steps_is_no_trouble(steps: list[int], start: int):
    most = len(steps)
    end = sum(step <= CAPACITY for step in steps)

    found = fit(Made(lambda value: steps[value - 1]), start=start, least=1, most=most)

    assert (found.largest or 0) == end
    assert found.fails_at == (end + 1 if end < most else None)


@given(end=st.integers(10, 100_000), base=st.floats(0.0, 0.5))
def test_a_straight_line_needs_ten_runs(end: int, base: float):
    card = Made(lambda value: CAPACITY * (base + (1 - base) * value / (end + 0.5)))

    found = fit(card, start=8, least=1, most=1 << 20)

    assert found.largest == end
    assert len(card.quick) <= 10


@given(holes=st.floats(0.0, 0.2), end=st.integers(20, 2000))
def test_where_the_allocator_gives_its_cache_back_the_end_is_found_all_the_same(holes: float, end: int):
    card = Made(
        lambda value: CAPACITY * value / (end + 0.5),
        lambda value: (1 + holes) * CAPACITY * value / (end + 0.5),
    )

    found = fit(card, start=8, least=1, most=1 << 20, pool=POOL)

    assert (found.largest, found.fails_at) == (end, end + 1)


def test_a_run_that_lives_on_giving_its_cache_back_says_up_to_where_it_need_not():
    card = Made(lambda value: CAPACITY * value / 100.5, lambda value: CAPACITY * value / 90.5)

    found = fit(card, start=8, least=1, most=1000)

    assert found.note == "at 100 the allocator gives its cache back 9 times, which is slow; 90 runs without"


@given(unit=st.integers(1, 64), end=st.integers(0, 5000))
def test_only_multiples_are_tried(unit: int, end: int):
    card = Made(lambda value: CAPACITY * value / (end + 0.5))

    found = fit(card, start=8, least=1, most=1 << 14, multiple_of=unit)

    assert all(value % unit == 0 for value in card.quick)
    assert found.largest == (end // unit * unit or None)
    assert found.fails_at == end // unit * unit + unit


def test_both_ends_of_the_proof_are_followed_and_hold_their_results():
    card = Made(lambda value: CAPACITY * value / 100.5)

    found = fit(card, start=8, least=1, most=1000, knob="batch", card="rtx-3090", margin_bytes=7)

    assert sorted(card.followed) == [100, 101]
    assert found.ends is not None
    assert found.ends.fits
    assert found.fails is not None
    assert found.fails.failure is not None
    assert dict(found.tried)[100] == FITS
    assert dict(found.tried)[101] == DOES_NOT_FIT
    assert (found.knob, found.card, found.margin_bytes) == ("batch", "rtx-3090", 7)


def test_nothing_fits_is_proven_by_the_least_value():
    found = fit(Made(lambda value: 2 * CAPACITY), start=8, least=1, most=1000)

    assert (found.largest, found.ends, found.fails_at) == (None, None, 1)
    assert found.fails is not None
    assert found.fails.verdict == DOES_NOT_FIT


def test_what_fits_up_to_the_most_says_so():
    found = fit(Made(lambda value: value), start=128, least=1, most=2048)

    assert (found.largest, found.fails_at, found.fails) == (2048, None, None)
    assert "2048 is the largest that makes sense" in found.note


def test_an_end_for_another_reason_than_memory_is_told():
    card = Made(lambda value: value, fails=lambda value: "too long for the table" if value > 77 else "")

    found = fit(card, start=8, least=1, most=1000)

    assert (found.largest, found.fails_at) == (77, 78)
    assert "another reason than memory: too long for the table" in found.note


def test_values_that_are_too_small_to_run_are_passed_over():
    small = Made(
        lambda value: CAPACITY * (value / 20.5) ** 2,
        fails=lambda value: "image too small" if value < 9 else "",
    )

    found = fit(small, start=3, least=1, most=1000)

    assert (found.largest, found.fails_at) == (20, 21)


def test_what_never_runs_says_why():
    found = fit(Made(lambda value: 0, fails=lambda value: "no kernel image"), start=8, least=1, most=1000)

    assert found.largest is None
    assert "no kernel image" in found.note


def test_a_larger_value_that_fits_is_told():
    card = Made(lambda value: CAPACITY * (0.5 if value == 53 else value / 50.5))

    found = fit(card, start=8, least=1, most=1000)

    assert (found.largest, found.fails_at) == (50, 51)
    assert found.note.startswith("53 fits all the same")


def test_a_followed_run_that_contradicts_the_quick_one_moves_the_end():
    card = Made(lambda value: CAPACITY * value / 100.5)

    def run(value: int, followed: bool) -> Result:
        return Result(DOES_NOT_FIT, CAPACITY) if followed and value == 100 else card(value, followed)

    found = fit(run, start=8, least=1, most=1000)

    assert (found.largest, found.fails_at) == (99, 100)


def test_a_multiple_beyond_the_most_is_refused():
    with pytest.raises(UsageError, match="no multiple of 64 from 1 to 32"):
        fit(Made(lambda value: value), start=8, least=1, most=32, multiple_of=64)
