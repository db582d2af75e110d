"""What explains that a measurement differs from a prediction: only what applies to these two runs."""

from __future__ import annotations

from collections.abc import Iterator

from vramscope.analysis.compare.figures import Comparison, Reason
from vramscope.analysis.compare.side import Side
from vramscope.analysis.explain.places import count
from vramscope.run.categories import CATEGORIES, WORKSPACE, plural
from vramscope.units import format_bytes

_VERSIONS = ("torch", "CUDA", "cuDNN")
_OF_NO_ACCOUNT = ("program", "model", "ended", "memory", "cards", "processes and cards")
_EXACT = 0.0005
"""Below this share of the peak a residual is none."""


def residual_reasons(predicted: Side, measured: Side, found: Comparison) -> tuple[Reason, ...]:
    """What differs in how the two were made, then the categories that the residual is in."""
    told = [*_made(found), *_outside(predicted, measured), *_retries(predicted, measured)]
    if predicted.trace is not None and measured.trace is not None:
        told += _categories(predicted, measured)
    return tuple(told)


def _made(found: Comparison) -> Iterator[Reason]:
    for each in found.conditions:
        if each.name in _VERSIONS:
            yield Reason(
                "versions", f"{each.name} is not the same, and what it asks for may differ with it", None
            )
        elif each.name == "card":
            yield Reason(
                "card", "the cards are not the same: libraries choose other kernels and work spaces", None
            )
        elif each.name == "complete steps":
            yield Reason(
                "steps", "not as many steps were run: a peak that grows from step to step is cut off", None
            )
        elif each.name not in _OF_NO_ACCOUNT:
            yield Reason(
                "settings", f"{each.name} is not the same, so memory is reserved in another way", None
            )


def _outside(predicted: Side, measured: Side) -> Iterator[Reason]:
    """The one figure that a prediction takes from a model."""
    if predicted.report is None or measured.report is None:
        return
    model, real = predicted.report.outside, measured.report.outside
    change = real.bytes - model.bytes
    if not change:
        return
    low, high = format_bytes(model.low_bytes), format_bytes(model.high_bytes)
    within = "within" if model.low_bytes <= real.bytes <= model.high_bytes else "outside of"
    sentence = (
        f"outside is {format_bytes(abs(change))} {_more(change)} than the model has it, "
        f"{within} its interval of {low} to {high}: context, loaded kernels and libraries"
    )
    yield Reason("outside", sentence, change)


def _retries(predicted: Side, measured: Side) -> Iterator[Reason]:
    one, other = (
        sum(each.count for each in side.report.retries) if side.report else 0
        for side in (predicted, measured)
    )
    if one != other:
        sentence = (
            f"the allocator gave its cache back {count(other, 'time')} when measured and {count(one, 'time')} "
            "when predicted, so what is reserved differs"
        )
        yield Reason("retries", sentence, None)


def _categories(predicted: Side, measured: Side) -> Iterator[Reason]:
    peak = predicted.peak.allocated_bytes if predicted.peak else 0
    for category in sorted(CATEGORIES, key=lambda each: -abs(_residual(predicted, measured, each))):
        change = _residual(predicted, measured, category)
        if abs(change) > _EXACT * peak:
            why = ": cuBLAS and cuDNN choose their work spaces on the card" if category == WORKSPACE else ""
            sentence = (
                f"{plural(category)} are {format_bytes(abs(change))} {_more(change)} when measured{why}"
            )
            yield Reason(category, sentence, change)


def _residual(predicted: Side, measured: Side, category: str) -> int:
    return measured.highest[category] - predicted.highest[category]


def _more(change: int) -> str:
    return "more" if change > 0 else "less"
