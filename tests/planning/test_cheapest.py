"""The search for the smallest card, with made-up runs on the real catalogue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vramscope.cards import all_cards, find_card
from vramscope.planning.cheapest import cheapest
from vramscope.planning.result import DOES_NOT_FIT, FAILED, FITS, Result

CARDS = all_cards()
BY_MEMORY = sorted(CARDS, key=lambda card: (card.memory_bytes, card.sms, card.id))
LARGEST = BY_MEMORY[-1].memory_bytes


class Needing:
    """A program that takes so much on every card; on some it fails for another reason."""

    def __init__(
        self, need_bytes: int, without_code: tuple[str, ...] = (), told_bytes: int | None = None
    ) -> None:
        self.need_bytes, self.without_code = need_bytes, without_code
        self.told_bytes = need_bytes if told_bytes is None else told_bytes
        self.ran: list[str] = []

    def __call__(self, card: str) -> Result:
        self.ran.append(card)
        memory = find_card(card).memory_bytes
        if card in self.without_code:
            return Result(FAILED, memory, "RuntimeError: no kernel image is available")
        verdict = FITS if self.need_bytes <= memory else DOES_NOT_FIT
        return Result(verdict, memory, peak_allocated_bytes=self.told_bytes, outside_bytes=0)


@given(need=st.integers(1, LARGEST), told=st.floats(0.7, 1.1))
def test_the_smallest_card_is_found_with_the_next_smaller_one_as_proof(need: int, told: float):
    program = Needing(need, told_bytes=int(need * told))

    found = cheapest(program, CARDS)

    answer = next(card for card in BY_MEMORY if card.memory_bytes >= need)
    assert found.card == answer.id
    assert found.tried[-1].card == answer.id
    assert [each.result.fits for each in found.tried] == [False] * (len(found.tried) - 1) + [True]
    smaller = [card.id for card in BY_MEMORY if card.memory_bytes < answer.memory_bytes]
    assert [each.card for each in found.tried[:-1]][-1:] == smaller[-1:]
    assert len(program.ran) == len(set(program.ran))


def test_only_cards_near_the_need_are_run():
    program = Needing(10 << 30)

    cheapest(program, CARDS)

    assert len(program.ran) <= 4


def test_a_card_that_torch_has_no_code_for_is_passed_over_and_stays_with_its_reason():
    answer = next(index for index, card in enumerate(BY_MEMORY) if card.memory_bytes > 13 << 30)
    blind = BY_MEMORY[answer].id

    found = cheapest(Needing(BY_MEMORY[answer].memory_bytes, (blind,)), CARDS)

    assert found.card == BY_MEMORY[answer + 1].id
    assert {each.card: each.result.why for each in found.tried}[blind].endswith(
        "no kernel image is available"
    )


def test_no_card_is_enough():
    found = cheapest(Needing(LARGEST + 1), CARDS, turned={"precision": "fp32"})

    assert found.card is None
    assert found.turned == {"precision": "fp32"}
    assert found.tried[-1].memory_bytes == LARGEST
    assert not found.tried[-1].result.fits


def test_what_runs_nowhere_tells_why():
    found = cheapest(Needing(1 << 30, tuple(card.id for card in CARDS)), CARDS)

    assert found.card is None
    assert {each.result.verdict for each in found.tried} == {FAILED}


@pytest.mark.parametrize("count", [1, 2])
def test_a_short_list_is_enough(count: int):
    found = cheapest(Needing(1), BY_MEMORY[:count])

    assert found.card == BY_MEMORY[0].id
