"""Rates from units and clocks, beside what NVIDIA publishes; bounds that follow from them."""

from __future__ import annotations

import pytest

from vramscope.cards import all_cards, find_card
from vramscope.theory import rates

BY_BOOST = 0.01
"""NVIDIA rounds, and counts with the boost clock, which is the one that CUDA reports for these cards."""
BY_CLOCK = 0.09
"""CUDA reports a clock above the one that the data sheet counts with: H100 SXM 1,980 for 1,830 MHz, H100 PCIe 1,755 for
1,620, B200 1,965 for 1,850.  The rate is a bound all the same, as the card may run at it."""
PUBLISHED = (
    ("a100-80gb", "bf16", 312, BY_BOOST, "A100 data sheet"),
    ("a100-40gb", "tf32", 156, BY_BOOST, "A100 data sheet"),
    ("a100-80gb", "fp32", 19.5, BY_BOOST, "A100 data sheet"),
    ("h100", "bf16", 989.4, BY_CLOCK, "H100 data sheet, SXM, without sparsity"),
    ("h100-pcie", "bf16", 756, BY_CLOCK, "H100 data sheet, PCIe, without sparsity"),
    ("b200", "bf16", 2250, BY_CLOCK, "Blackwell architecture brief, dense"),
    ("v100-16gb", "fp16", 125, BY_BOOST, "V100 data sheet, SXM2"),
    ("t4", "fp16", 65, BY_BOOST, "T4 data sheet"),
    ("titan-rtx", "fp16", 130.5, BY_BOOST, "Turing whitepaper"),
    ("rtx-2080-ti", "fp16", 53.8, BY_BOOST, "Turing whitepaper: FP16 with FP32 accumulate, 107.6 / 2"),
    ("rtx-3090", "fp16", 71, BY_BOOST, "GA102 whitepaper: FP16 with FP32 accumulate, half of 142"),
    ("rtx-3090", "tf32", 35.6, BY_BOOST, "GA102 whitepaper"),
    ("rtx-3080", "bf16", 59.5, BY_BOOST, "GA102 whitepaper"),
    ("rtx-a6000", "fp16", 154.8, BY_BOOST, "GA102 whitepaper: RTX A6000, full rate"),
    ("a10", "bf16", 125, BY_BOOST, "A10 data sheet"),
    ("a10g", "bf16", 70, BY_BOOST, "A10G data sheet"),
    ("a40", "bf16", 149.7, BY_BOOST, "A40 data sheet"),
    ("a30", "bf16", 165, BY_BOOST, "A30 data sheet"),
    ("rtx-4090", "bf16", 165.2, BY_BOOST, "Ada whitepaper: BF16 with FP32 accumulate"),
    ("l4", "bf16", 121, BY_BOOST, "L4 data sheet: 242 with sparsity"),
    ("l40", "bf16", 181.05, BY_BOOST, "L40 data sheet"),
    ("l40s", "bf16", 362.05, 0.013, "L40S data sheet, whose clock is below the reported one by a hundredth"),
    ("rtx-5090", "bf16", 209.5, BY_BOOST, "RTX Blackwell whitepaper: BF16 with FP32 accumulate"),
)


@pytest.mark.parametrize(("card", "precision", "tflops", "off", "source"), PUBLISHED)
def test_the_rate_is_the_published_one(card: str, precision: str, tflops: float, off: float, source: str):
    found = rates.rate(find_card(card), precision).values["flops_per_s"]

    assert found == pytest.approx(tflops * 1e12, rel=off)


def test_a_clock_that_is_reported_too_high_leaves_the_rate_a_bound():
    for card, precision, tflops, off, _ in PUBLISHED:
        found = rates.rate(find_card(card), precision).values["flops_per_s"]
        assert found is not None
        assert found >= tflops * 1e12 * (1 if off == BY_CLOCK else 1 - BY_BOOST)


@pytest.mark.parametrize("card", all_cards(), ids=lambda card: card.id)
def test_each_card_of_the_catalogue_has_units(card: object):
    assert rates.rate(card, "fp32").values["flops_per_s"]  # type: ignore[arg-type]
    assert rates.bandwidth(card).values["bytes_per_s"]  # type: ignore[arg-type]


def test_the_bandwidth_is_the_published_one():
    """A100 80GB data sheet: 2,039 GB/s; GA102 whitepaper: 936 GB/s for the RTX 3090."""
    assert rates.bandwidth(find_card("a100-80gb")).values["bytes_per_s"] == pytest.approx(2039e9, rel=0.001)
    assert rates.bandwidth(find_card("rtx-3090")).values["bytes_per_s"] == pytest.approx(936e9, rel=0.001)


def test_what_a_card_has_no_units_for_is_not_known_and_says_so():
    found = rates.rate(find_card("t4"), "bf16")

    assert found.values["flops_per_s"] is None
    assert "no units for bf16" in found.assumption
    assert "a figure that is not known" in rates.rate(find_card("h20"), "bf16").assumption


def test_convolutions_in_fp32_run_in_tf32_where_the_card_has_it():
    ampere, turing = find_card("a100-80gb"), find_card("t4")
    mixed = rates.shortest_step(ampere, "fp32", 10**12, 10**12).values["seconds"]
    plain = rates.shortest_step(ampere, "fp32", 10**12).values["seconds"]

    assert mixed == pytest.approx(1e12 / 156e12, rel=0.01)
    assert plain == pytest.approx(1e12 / 19.5e12, rel=0.01)
    seconds = [rates.shortest_step(turing, "fp32", 10**12, each).values["seconds"] for each in (0, 10**12)]
    assert seconds[0] == seconds[1]


def test_a_bound_says_that_it_is_one():
    assert "A bound, not a forecast" in rates.shortest_step(find_card("l4"), "amp-bf16", 10**9).assumption
