"""Card: what the stand-ins read, other memory sizes, and which builds of torch run on it."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vramscope.cards import Card, all_cards, find_card
from vramscope.errors import CardError
from vramscope.units import GIB, MIB

CU130 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"]
CU126 = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
HEADER = Path(__file__).parents[2] / "src/vramscope/virtual/native/vs.h"


def _native_fields() -> list[str]:
    """The names in struct vs_card, comments and array sizes removed."""
    body = re.search(r"struct vs_card \{(.*?)\n\};", HEADER.read_text(encoding="utf-8"), re.DOTALL)
    assert body is not None
    declarations = re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL).split(";")
    names = [name for line in declarations for name in re.sub(r"^\s*\w+\s", "", line).split(",")]
    return [re.sub(r"\[.*", "", name).strip() for name in names if name.strip()]


@pytest.mark.parametrize("card", all_cards(), ids=lambda card: card.id)
def test_native_text_has_each_field_of_the_struct_once(card: Card) -> None:
    pairs = [field.split("=") for field in card.to_native(464 * MIB).split(";")]
    assert sorted(key for key, _ in pairs) == sorted(_native_fields())


@pytest.mark.parametrize("card", all_cards(), ids=lambda card: card.id)
def test_native_text_parses_back(card: Card) -> None:
    fields = dict(field.split("=") for field in card.to_native(464 * MIB).split(";"))
    assert fields.pop("name") == card.name
    numbers = {key: int(value) for key, value in fields.items()}
    assert (numbers.pop("major"), numbers.pop("minor")) == card.capability
    assert numbers.pop("outside_bytes") == 464 * MIB
    assert numbers == {key: getattr(card, key) for key in numbers}


@pytest.mark.parametrize("name", ["", "a;b", "a=b", "two\nlines", "x" * 256])
def test_names_that_native_text_cannot_hold(name: str) -> None:
    with pytest.raises(CardError, match="name"):
        replace(find_card("t4"), name=name).to_native(0)


@pytest.mark.parametrize("outside", [-1, 16 * GIB])
def test_outside_must_fit_the_card(outside: int) -> None:
    with pytest.raises(CardError, match="outside the allocator"):
        find_card("t4").to_native(outside)


@given(st.integers(1, 1 << 60))
def test_with_memory_changes_only_the_memory(memory_bytes: int) -> None:
    card = find_card("rtx-3080-12gb")
    other = card.with_memory(memory_bytes)
    assert other.memory_bytes == memory_bytes
    assert other.source_of("memory_bytes") == "as given"
    assert other.source_of("sms") == card.source_of("sms")
    changed = {"memory_bytes", "memory_low_bytes", "unverified", "sources"}
    for field in set(Card.__dataclass_fields__) - changed:
        assert getattr(other, field) == getattr(card, field)


@pytest.mark.parametrize("memory_bytes", [0, -1])
def test_no_memory_is_no_card(memory_bytes: int) -> None:
    with pytest.raises(CardError, match="above zero"):
        find_card("t4").with_memory(memory_bytes)


def test_cards_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        find_card("t4").sms = 1  # type: ignore[misc]


def test_sources_of_no_figure_and_of_an_unsourced_one() -> None:
    card = find_card("rtx-3060")
    with pytest.raises(CardError, match="no figure"):
        card.source_of("colour")
    with pytest.raises(CardError, match="no source"):
        replace(card, sources=()).source_of("sms")


def test_what_a_cu130_build_runs_on() -> None:
    unsupported = {card.id for card in all_cards() if not card.supported_by(CU130)}
    assert unsupported == {"v100-16gb", "v100-32gb"}


def test_what_a_cu126_build_runs_on() -> None:
    unsupported = {card.capability for card in all_cards() if not card.supported_by(CU126)}
    assert unsupported == {(10, 0), (12, 0)}


@pytest.mark.parametrize(
    ("card_id", "arch_list", "supported"),
    [
        ("rtx-4090", ["sm_80"], True),
        ("a100-80gb", ["sm_86"], False),
        ("rtx-5090", ["compute_75"], True),
        ("t4", ["compute_80"], False),
        ("h100", ["sm_90a"], True),
        ("b200", ["compute_90a"], False),
        ("rtx-5090", ["sm_100f"], False),
        ("b200", ["sm_100f"], True),
        ("b200", ["compute_90f"], False),
        ("t4", [], False),
        ("t4", ["gfx90a", ""], False),
    ],
)
def test_rules_of_compatibility(card_id: str, arch_list: list[str], supported: bool) -> None:
    assert find_card(card_id).supported_by(arch_list) is supported
