"""The catalogue: complete, sane, sourced, and findable by the names that people write."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vramscope.cards import Card, all_cards, find_card
from vramscope.cards.catalogue import cards_from_toml, normalise
from vramscope.errors import CardError, UnknownCardError
from vramscope.units import GIB, KIB, MIB

IDS = [
    "t4", "rtx-2080-ti", "titan-rtx", "rtx-3060", "rtx-3070", "rtx-3080", "rtx-3080-12gb", "rtx-3080-ti",
    "rtx-3090", "rtx-3090-ti", "rtx-4060-ti-16gb", "rtx-4070", "rtx-4070-ti", "rtx-4070-ti-super",
    "rtx-4080", "rtx-4090", "rtx-5070-ti", "rtx-5080", "rtx-5090", "rtx-a6000", "rtx-6000-ada",
    "rtx-pro-5000", "rtx-pro-6000", "a10", "a10g", "a30", "a40", "a100-40gb", "a100-80gb", "l4", "l40",
    "l40s", "h100", "h100-pcie", "h20", "h200", "gh200", "b200", "v100-16gb", "v100-32gb",
]  # fmt: skip

SOLD_WITH_GB = {
    "t4": 16, "rtx-2080-ti": 11, "titan-rtx": 24, "rtx-3060": 12, "rtx-3070": 8, "rtx-3080": 10,
    "rtx-3080-12gb": 12, "rtx-3080-ti": 12, "rtx-3090": 24, "rtx-3090-ti": 24, "rtx-4060-ti-16gb": 16,
    "rtx-4070": 12, "rtx-4070-ti": 12, "rtx-4070-ti-super": 16, "rtx-4080": 16, "rtx-4090": 24,
    "rtx-5070-ti": 16, "rtx-5080": 16, "rtx-5090": 32, "rtx-a6000": 48, "rtx-6000-ada": 48,
    "rtx-pro-5000": 48, "rtx-pro-6000": 96, "a10": 24, "a10g": 24, "a30": 24, "a40": 48, "a100-40gb": 40,
    "a100-80gb": 80, "l4": 24, "l40": 48, "l40s": 48, "h100": 80, "h100-pcie": 80, "h20": 96, "h200": 141,
    "gh200": 96, "b200": 180, "v100-16gb": 16, "v100-32gb": 32,
}  # fmt: skip

FIGURES = ("sms", "memory_bytes", "l2_bytes", "sm_khz", "memory_khz", "bus_bits")

#: GB/s that the data sheets give; clock x 2 transfers x bus must come near.
BANDWIDTHS = {
    "t4": 320, "rtx-2080-ti": 616, "titan-rtx": 672, "rtx-3060": 360, "rtx-3070": 448, "rtx-3080": 760,
    "rtx-3080-12gb": 912, "rtx-3080-ti": 912, "rtx-3090": 936, "rtx-3090-ti": 1008, "rtx-4060-ti-16gb": 288,
    "rtx-4070": 504, "rtx-4070-ti": 504, "rtx-4070-ti-super": 672, "rtx-4080": 717, "rtx-4090": 1008,
    "rtx-5070-ti": 896, "rtx-5080": 960, "rtx-5090": 1792, "rtx-a6000": 768, "rtx-6000-ada": 960,
    "rtx-pro-5000": 1344, "rtx-pro-6000": 1792, "a10": 600, "a10g": 600, "a30": 933, "a40": 696,
    "a100-40gb": 1555, "a100-80gb": 2039, "l4": 300, "l40": 864, "l40s": 864, "h100": 3350,
    "h100-pcie": 2039, "h20": 4000, "h200": 4900, "gh200": 4000, "b200": 7672, "v100-16gb": 900,
    "v100-32gb": 900,
}  # fmt: skip


def test_all_cards_are_there_in_order() -> None:
    assert [card.id for card in all_cards()] == IDS


@pytest.mark.parametrize("card", all_cards(), ids=lambda card: card.id)
class TestEachCard:
    def test_memory_is_what_it_is_sold_with_less_a_little(self, card: Card) -> None:
        sold = SOLD_WITH_GB[card.id] * GIB
        assert 0.91 * sold < card.memory_bytes < 1.015 * sold
        assert card.memory_bytes % (64 * KIB) == 0

    def test_other_readings_of_the_memory_are_near_and_smaller(self, card: Card) -> None:
        low = card.memory_low_bytes
        if low is not None:
            assert 0.93 * card.memory_bytes < low < card.memory_bytes

    def test_figures_are_sane(self, card: Card) -> None:
        assert 20 <= card.sms <= 200
        assert 2 * MIB <= card.l2_bytes <= 128 * MIB
        assert card.registers_per_sm == 65536
        assert 1_200_000 < card.sm_khz < 3_000_000
        assert 800_000 < card.memory_khz < 16_000_000
        assert card.bus_bits % 32 == 0
        assert 128 <= card.bus_bits <= 8192
        assert card.shared_per_block_optin_bytes == card.shared_per_sm_bytes - card.shared_reserved_bytes
        assert card.shared_per_sm_bytes <= card.l1_bytes

    def test_every_figure_has_a_source_or_is_marked(self, card: Card) -> None:
        for figure in FIGURES:
            source = card.source_of(figure)
            assert (source is None) == (figure in card.unverified)
            assert source is None or len(source) > 10
        assert set(card.unverified) <= set(FIGURES)
        assert {figure for figure, _ in card.sources} <= {*FIGURES, "figures", "memory_low_bytes"}
        if card.memory_low_bytes is not None:
            assert card.source_of("memory_low_bytes")

    def test_bandwidth_is_that_of_the_data_sheet(self, card: Card) -> None:
        bytes_per_clock = 2 * card.bus_bits / 8
        assert card.memory_khz * bytes_per_clock / 1e6 == pytest.approx(BANDWIDTHS[card.id], rel=0.03)

    def test_it_is_found_by_all_its_names(self, card: Card) -> None:
        assert find_card(card.id) is card
        for alias in card.aliases:
            assert find_card(alias) is card
        assert find_card(card.name).name == card.name


@pytest.mark.parametrize(
    ("name", "card_id"),
    [
        ("RTX3090", "rtx-3090"),
        ("rtx-3090", "rtx-3090"),
        ("3090", "rtx-3090"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("nvidia_geforce_rtx_3090ti", "rtx-3090-ti"),
        ("RTX 3060 12GB", "rtx-3060"),
        ("rtx3060-12g", "rtx-3060"),
        ("RTX 3080 12 GB", "rtx-3080-12gb"),
        ("NVIDIA GeForce RTX 3080", "rtx-3080"),
        ("RTX 4060 Ti 16GB", "rtx-4060-ti-16gb"),
        ("RTX 4060 Ti", "rtx-4060-ti-16gb"),
        ("4070TiSuper", "rtx-4070-ti-super"),
        ("A100", "a100-80gb"),
        ("A100 40GB", "a100-40gb"),
        ("A100-PCIE-40GB", "a100-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-80gb"),
        ("h100-sxm", "h100"),
        ("H100", "h100"),
        ("H100 80GB HBM3", "h100"),
        ("H100-SXM5-80GB", "h100"),
        ("H100 PCIe", "h100-pcie"),
        ("Tesla T4", "t4"),
        ("T4 16GB", "t4"),
        ("Tesla V100-SXM2-32GB", "v100-32gb"),
        ("V100", "v100-16gb"),
        ("titan rtx", "titan-rtx"),
        ("A6000", "rtx-a6000"),
        ("RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000"),
        ("pro 6000", "rtx-pro-6000"),
        ("H200 141GB", "h200"),
        ("L4 24 GB", "l4"),
        ("GH200 480GB", "gh200"),
    ],
)
def test_names_as_people_write_them(name: str, card_id: str) -> None:
    assert find_card(name).id == card_id


@pytest.mark.parametrize(
    "name", ["", " ", "rtx", "nvidia", "gpu", "RTX 3090 12GB", "RTX 3060 8GB", "T4 4GB", "mi300x"]
)
def test_other_names_are_no_cards(name: str) -> None:
    with pytest.raises(UnknownCardError) as caught:
        find_card(name)
    assert caught.value.name == name
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "near"),
    [("rtx-3091", "rtx-3090"), ("rtx4090x", "rtx-4090"), ("A101", "a100-80gb"), ("rtx-5090-ti", "rtx-5090")],
)
def test_unknown_names_get_the_nearest_ids(name: str, near: str) -> None:
    with pytest.raises(UnknownCardError, match=near) as caught:
        find_card(name)
    assert near in caught.value.nearest
    assert 1 <= len(caught.value.nearest) <= 3


def test_no_id_or_alias_means_two_cards() -> None:
    meanings: dict[str, set[str]] = {}
    for card in all_cards():
        for name in (card.id, *card.aliases):
            meanings.setdefault(normalise(name), set()).add(card.id)
    assert not {name: ids for name, ids in meanings.items() if len(ids) > 1}


@given(st.sampled_from(all_cards()), st.data())
def test_case_separators_and_brand_do_not_matter(card: Card, data: st.DataObject) -> None:
    separator = data.draw(st.sampled_from(["-", " ", "_", " - ", "/"]))
    prefix = data.draw(st.sampled_from(["", "NVIDIA ", "nvidia-", "NVIDIA GeForce ", " "]))
    spelled = prefix + card.id.replace("-", separator)
    flips = data.draw(st.lists(st.booleans(), min_size=len(spelled), max_size=len(spelled)))
    spelled = "".join(char.upper() if flip else char for char, flip in zip(spelled, flips, strict=True))
    assert find_card(spelled) is card


@given(st.text(max_size=40))
def test_normalising_any_text_leaves_letters_and_digits_and_is_stable(text: str) -> None:
    once = normalise(text)
    assert re.fullmatch(r"[a-z0-9]*", once)
    assert normalise(text.upper()) == normalise(text.upper().lower())


def test_an_incomplete_card_is_named() -> None:
    with pytest.raises(CardError, match="half"):
        cards_from_toml('[capabilities."8.6"]\n[cards.half]\nname = "Half"\ncapability = "8.6"\nsm_mhz = 1\n')


def test_a_card_of_an_undescribed_capability_is_named() -> None:
    with pytest.raises(CardError, match=r"odd.*7\.7"):
        cards_from_toml('[cards.odd]\nname = "Odd"\ncapability = "7.7"\nsm_mhz = 1\nmemory_mhz = 1\n')
