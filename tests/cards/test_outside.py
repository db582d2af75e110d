"""Memory outside the allocator: the readings that the model was made from, and its limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vramscope.cards import Card, all_cards, find_card, outside_of
from vramscope.cards.outside import MEASURED_CONTEXTS, context_by_formula
from vramscope.units import MIB

MEASURED = {
    "rtx-3090": 256, "rtx-6000-ada": 426, "l40s": 426, "rtx-pro-6000": 555, "a100-40gb": 414,
    "a100-80gb": 414, "h100": 520, "h200": 520, "b200": 614, "v100-16gb": 307,
}  # fmt: skip

FORMULA = {
    "t4": 113, "rtx-2080-ti": 175, "rtx-3060": 104, "rtx-3080-ti": 250, "a10": 228, "rtx-4070": 154,
    "rtx-4070-ti": 194, "rtx-4090": 385, "l4": 188, "h100-pcie": 453, "rtx-5090": 503,
    "rtx-4060-ti-16gb": 121,
}  # fmt: skip


@pytest.mark.parametrize(("card_id", "context"), MEASURED.items())
def test_measured_contexts(card_id: str, context: int) -> None:
    outside = outside_of(find_card(card_id))
    assert outside.how == "measured context"
    assert outside.low_bytes == context * MIB


@pytest.mark.parametrize(("card_id", "context"), FORMULA.items())
def test_contexts_by_formula(card_id: str, context: int) -> None:
    outside = outside_of(find_card(card_id))
    assert outside.how == "formula"
    assert outside.low_bytes / MIB == pytest.approx(context, abs=0.6)


@pytest.mark.parametrize(
    ("card_id", "residual"),
    [
        ("rtx-3090", 0),
        ("rtx-6000-ada", -2),
        ("rtx-pro-6000", -1),
        ("h100", 0),
        ("a100-80gb", -8),
        ("b200", -34),
    ],
)
def test_the_formula_against_the_measured_ones(card_id: str, residual: int) -> None:
    card = find_card(card_id)
    assert context_by_formula(card) / MIB - MEASURED[card_id] == pytest.approx(residual, abs=1)


@pytest.mark.parametrize("card", all_cards(), ids=lambda card: card.id)
class TestEveryCard:
    def test_lazy_interval_is_0_to_150_over_the_context(self, card: Card) -> None:
        outside = outside_of(card)
        assert outside.loading == "lazy"
        assert outside.bytes - outside.low_bytes == 50 * MIB
        assert outside.high_bytes - outside.low_bytes == 150 * MIB

    def test_eager_is_larger_and_within_its_interval(self, card: Card) -> None:
        lazy, eager = outside_of(card), outside_of(card, eager=True)
        assert eager.loading == "eager"
        assert lazy.high_bytes < eager.low_bytes < eager.bytes < eager.high_bytes < card.memory_bytes // 4
        assert eager.how == lazy.how

    def test_notes_say_what_it_is_made_of(self, card: Card) -> None:
        for eager in (False, True):
            outside = outside_of(card, eager=eager)
            assert "context" in outside.note
            assert ("formula" in outside.note) == (outside.how == "formula")


@pytest.mark.parametrize(("card_id", "without", "with_cudnn"), [("a100-80gb", 1233, 1551), ("t4", 825, 1129)])
def test_eager_sums(card_id: str, without: int, with_cudnn: int) -> None:
    outside = outside_of(find_card(card_id), eager=True)
    assert outside.low_bytes / MIB == pytest.approx(without, abs=4)
    assert outside.bytes / MIB == pytest.approx(with_cudnn, abs=4)


@pytest.mark.parametrize(
    ("card_id", "reading"), [("a100-40gb", 1443), ("a100-40gb", 1695), ("t4", 1012), ("t4", 1106)]
)
def test_readings_that_look_eager_are_within_the_interval(card_id: str, reading: int) -> None:
    outside = outside_of(find_card(card_id), eager=True)
    assert outside.low_bytes <= reading * MIB <= outside.high_bytes


@pytest.mark.parametrize(
    ("card_id", "reading"),
    [
        ("t4", 119),
        ("t4", 147),
        ("rtx-4090", 504),
        ("rtx-6000-ada", 429),
        ("a100-40gb", 504),
        ("h100-pcie", 601),
    ],
)
def test_contexts_in_use_are_within_the_lazy_interval(card_id: str, reading: int) -> None:
    """Used less allocated less reserved of one out-of-memory message each, printed to 0.01 GiB."""
    outside = outside_of(find_card(card_id))
    assert outside.low_bytes - 10 * MIB <= reading * MIB <= outside.high_bytes + 10 * MIB


def test_measured_contexts_are_of_cards_in_the_catalogue() -> None:
    assert set(MEASURED_CONTEXTS) <= {card.id for card in all_cards()}


def test_a_capability_of_the_future_takes_the_code_of_the_newest_known() -> None:
    future = replace(find_card("rtx-5090"), id="future", capability=(13, 0))
    assert outside_of(future, eager=True).bytes == outside_of(find_card("rtx-5090"), eager=True).bytes
