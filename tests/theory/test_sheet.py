"""The sheet of a number of parameters: the worked numbers of the articles, and sums that close."""

from __future__ import annotations

import pytest

from vramscope.cards import find_card
from vramscope.errors import UsageError
from vramscope.theory.claims import CLAIMS
from vramscope.theory.schemes import SCHEMES, scheme_of
from vramscope.theory.states import STATES, states_of
from vramscope.theory.training import Sheet, sheet, training
from vramscope.units import GIB

GB = 10**9


def weights(parameters: int) -> list[int]:
    """In fp32, in half, in int8, in NF4."""
    return [int(each.values["weight_bytes"] or 0) for each in sheet(parameters).weights]


def claimed(name: str, found: Sheet) -> int:
    return next(each.said_bytes for each in found.claims if each.claim.name == name)


def test_eleven_billion_parameters_in_fp32_are_about_41_gib():
    assert round(weights(11 * GB)[0] / GIB) == 41


def test_thirteen_billion_parameters_in_fp32_are_52_gb():
    assert weights(13 * GB)[0] == 52 * GB


def test_seven_billion_parameters_in_bf16_are_14_gb():
    assert weights(7 * GB)[1] == 14 * GB


def test_llama_6b_in_int8_is_said_to_take_about_25_gb():
    assert claimed("int8", sheet(6 * GB)) / GB == pytest.approx(25.3)


@pytest.mark.parametrize(
    ("name", "each"), [("16A", 16), ("20A", 20), ("20x", 20), ("24x", 24), ("1 + 1 + 2", 16)]
)
def test_the_articles_sums_are_what_they_say_per_parameter(name: str, each: int):
    claim = next(claim for claim in CLAIMS if claim.name == name)

    assert sum(size for _, size in claim.parts) == claim.per_parameter == each
    assert claimed(name, sheet(1000)) == 1000 * each


def test_what_pytorch_is_said_to_keep_under_adam_is_the_schemes_sum():
    for claim in CLAIMS[:5]:
        scheme = scheme_of("amp" if claim.said == "mixed precision" else "fp32")
        adam = states_of("adam").per_parameter(scheme.state)
        assert adam is not None
        assert claim.pytorch == scheme.lasting + adam
        assert claim.casts == scheme.cast


def test_only_with_masters_do_the_mixed_sums_come_about():
    adam = {each.name: training(1, each, states_of("adam")).per_parameter for each in SCHEMES}

    assert adam == {"fp32": 16, "amp": 16, "half": 8, "half+master": 16, "half+masters": 20}


@pytest.mark.parametrize("states", STATES, ids=lambda states: states.name)
@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_the_parts_add_up(scheme: object, states: object):
    found = training(10**6, scheme, states)  # type: ignore[arg-type]

    if found.per_parameter is None:
        assert (found.lasting_bytes, found.total_bytes, found.state_bytes) == (None, None, None)
    else:
        assert found.lasting_bytes == round(10**6 * found.per_parameter) + states.once  # type: ignore[attr-defined]
        assert found.total_bytes == found.lasting_bytes + found.cast_bytes


@pytest.mark.parametrize("ranks", [1, 2, 8, 64])
def test_the_ranks_of_zero_together_hold_what_is_split_once(ranks: int):
    found = sheet(6400, ranks=ranks)
    ddp, one, two, three = (int(each.values["rank_bytes"] or 0) for each in found.sharding)
    weight, gradient, rest = 4 * 6400, 4 * 6400, 8 * 6400

    assert ddp == weight + gradient + rest
    assert ranks * one == ranks * (weight + gradient) + rest
    assert ranks * two == ranks * weight + gradient + rest
    assert ranks * three == ddp


def test_the_zero_papers_example_of_7_5_billion_on_64_ranks():
    """Rajbhandari et al. 2020, figure 1: 120, 31.4, 16.6 and 1.9 GB."""
    found = sheet(7_500_000_000, precision="half+master", optimizer="adam", ranks=64)
    sizes = [int(each.values["rank_bytes"] or 0) / GB for each in found.sharding]

    assert [round(size, 1) for size in sizes] == [120.0, 31.4, 16.6, 1.9]


def test_loading_onto_the_card_takes_twice_the_weights():
    assert [each.values["card_bytes"] for each in sheet(100).loading] == [800, 400, 400]


def test_where_states_follow_from_shapes_no_sum_is_made_up():
    found = sheet(1000, optimizer="adafactor")

    assert found.parts[0].lasting_bytes is None
    assert [each.values["rank_bytes"] for each in found.sharding] == [None] * 4
    assert found.matrix == ()


def test_tokens_and_a_card_give_operations_rates_and_bounds():
    found = sheet(7 * GB, tokens=1000, card=find_card("a100-80gb"))
    names = [each.name for each in found.step]

    assert found.step[0].values["step_flops"] == 6 * 7 * GB * 1000
    assert "shortest step, bf16" in names
    seconds = found.step[names.index("shortest step, bf16")].values["seconds"]
    assert seconds == pytest.approx(6 * 7 * GB * 1000 / 312e12, rel=0.01)
    assert sheet(7 * GB, tokens=1000).step == found.step[:1]
    assert "a100-80gb, fp32" in [each.name for each in sheet(7 * GB, card=find_card("a100-80gb")).step]


def test_a_type_that_a_card_has_no_units_for_has_no_bound():
    asked = sheet(GB, tokens=10, card=find_card("t4"), precision="bf16").step
    unasked = sheet(GB, tokens=10, card=find_card("t4")).step

    assert [each.values["seconds"] for each in asked if "seconds" in each.values] == [None]
    assert not any("bf16" in each.name for each in unasked)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"parameters": 0}, "0 parameters cannot be"),
        ({"parameters": 10**17}, "cannot be"),
        ({"parameters": 5, "optimizer": "sdg"}, "no formula for the optimizer 'sdg'"),
        ({"parameters": 5, "precision": "fp64"}, "no scheme is called 'fp64'"),
        ({"parameters": 5, "ranks": 0}, "0 ranks cannot be"),
        ({"parameters": 5, "tokens": 0}, "0 tokens cannot be"),
    ],
)
def test_what_cannot_be_is_said(how: dict[str, int], told: str):
    with pytest.raises(UsageError, match=told):
        sheet(**how)
