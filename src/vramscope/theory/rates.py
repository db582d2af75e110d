"""A card's arithmetic from its units and clock, and the shortest step that it allows."""

from __future__ import annotations

from dataclasses import dataclass

from vramscope.cards import Card
from vramscope.theory.formula import Formula

FP32, TF32, FP16, BF16 = "fp32", "tf32", "fp16", "bf16"

_GUIDE = "CUDA C++ Programming Guide, throughput of native arithmetic instructions"


@dataclass(frozen=True, slots=True)
class Units:
    """Multiply-adds per clock of one multiprocessor."""

    fp32: int
    fp16: int
    """On tensor cores, dense, summed in fp32."""
    bf16: int | None
    """None: it has no such units."""
    tf32: int | None
    source: str


UNITS = {
    (7, 0): Units(64, 512, None, None, f"{_GUIDE}; NVIDIA Tesla V100 whitepaper: 8 tensor cores of 64"),
    (7, 5): Units(
        64, 512, None, None, f"{_GUIDE}; NVIDIA Turing whitepaper, appendix A; T4 data sheet (65 TFLOPS)"
    ),
    (8, 0): Units(64, 1024, 1024, 512, f"{_GUIDE}; NVIDIA A100 whitepaper: 4 tensor cores of 256"),
    (8, 6): Units(128, 512, 512, 256, f"{_GUIDE}; NVIDIA Ampere GA102 whitepaper, appendix A"),
    (8, 9): Units(
        128, 512, 512, 256, f"{_GUIDE}; NVIDIA Ada whitepaper, appendix A; L4 and L40S data sheets"
    ),
    (9, 0): Units(128, 2048, 2048, 1024, f"{_GUIDE}; NVIDIA H100 whitepaper, table 2"),
    (10, 0): Units(128, 4096, 4096, 2048, f"{_GUIDE}; NVIDIA Blackwell brief, from B200's 2.25 PFLOPS dense"),
    (12, 0): Units(128, 512, 512, 256, f"{_GUIDE}; NVIDIA RTX Blackwell whitepaper, appendix A"),
}
"""By compute capability."""
_HALVED = ("l40", "a10g")
"""Like GeForce cards they do tensor products that are summed in fp32, as PyTorch's are, at half the rate: the
whitepapers' appendices; NVIDIA L40 and A10G data sheets (181 and 70 TFLOPS in half, dense)."""
_CAPPED = ("h20",)
"""Sold with less than its units and clock would do; its rate is not published with them."""


def rate(card: Card, precision: str) -> Formula:
    """The most operations per second of a type; None where the card has no units for it, or they are not known."""
    units = UNITS.get(card.capability)
    per_clock = _per_clock(card, units, precision)
    value = None if per_clock is None else 2 * per_clock * card.sms * card.sm_khz * 1000
    return Formula(
        f"{card.id}, {precision}",
        f"2 · {per_clock or '?'} multiply-adds · {card.sms} SMs · {card.sm_khz / 1000:,.0f} MHz",
        {"flops_per_s": value},
        _assumption(card, units, precision),
        units.source if units else "none",
        {"card": card.id, "precision": precision},
    )


def _per_clock(card: Card, units: Units | None, precision: str) -> int | None:
    if units is None or (card.id in _CAPPED and precision != FP32):
        return None
    found: int | None = getattr(units, precision)
    if found is not None and precision != FP32 and _halves(card):
        return found // 2
    return found


def _halves(card: Card) -> bool:
    return "GeForce" in card.name or card.id in _HALVED


def _assumption(card: Card, units: Units | None, precision: str) -> str:
    if units is None:
        return f"Units of capability {card.capability[0]}.{card.capability[1]} are not known."
    if precision == FP32:
        return "All cores do a multiply-add in each clock at the highest clock that CUDA reports."
    if card.id in _CAPPED:
        return "Its tensor cores are limited below what units and clock say, by a figure that is not known."
    if getattr(units, precision) is None:
        return f"It has no units for {precision}."
    half = " This card sums in fp32, as PyTorch does, at half the rate." if _halves(card) else ""
    return f"All tensor cores are busy in each clock, dense, at the highest clock that CUDA reports.{half}"


def bandwidth(card: Card) -> Formula:
    """Bytes per second between the card and its memory."""
    return Formula(
        f"{card.id}, memory",
        f"2 · {card.memory_khz / 1000:,.0f} MHz · {card.bus_bits} bits / 8",
        {"bytes_per_s": 2 * card.memory_khz * 1000 * card.bus_bits // 8},
        "Two transfers in each clock that CUDA reports, all of them useful.",
        "CUDA C++ Best Practices Guide, theoretical bandwidth calculation",
        {"card": card.id},
    )


def shortest_step(card: Card, precision: str, flops: int, convolution_flops: int = 0) -> Formula:
    """The time that a step's operations need at the card's full rate: no step is shorter.

    `flops` includes `convolution_flops`, which PyTorch runs in TF32 where everything else is in fp32."""
    rates = {kind: rate(card, kind).values["flops_per_s"] for kind in (FP32, TF32, FP16, BF16)}
    products, convolutions = _kinds(precision)
    parts = ((flops - convolution_flops, products), (convolution_flops, convolutions))
    total: float | None = 0.0
    for count, kind in parts:
        speed = rates[kind] or (rates[FP32] if kind == TF32 else None)
        total = (
            None if total is None or (speed is None and count) else total + (count / speed if speed else 0)
        )
    mixed = convolution_flops and products != convolutions
    return Formula(
        "shortest step",
        f"{f'convolutions / {convolutions} rate + ' if mixed else ''}products / {products} rate",
        {"seconds": total, "steps_per_s": 1 / total if total else None},
        "A bound, not a forecast: nothing else to do and nothing to wait for; only a card above the clock that CUDA "
        "reports (GeForce cards, by up to a tenth), or an algorithm with fewer multiplications (Winograd), goes below.",
        "the card's rates; docs.pytorch.org/docs/stable/notes/cuda.html (TF32 for convolutions)",
        {"card": card.id, "precision": precision, "flops": flops, "convolution_flops": convolution_flops},
    )


def _kinds(precision: str) -> tuple[str, str]:
    """In which types products and convolutions are computed."""
    if precision == FP32:
        return FP32, TF32
    found = precision.removeprefix("amp-")
    return found, found
