"""Formulas in words: a metric with its value, a formula with its assumption and source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vramscope.run.categories import plural
from vramscope.theory.claims import Claim
from vramscope.theory.formula import Formula
from vramscope.theory.training import Sheet
from vramscope.units import format_bytes, format_gib
from vramscope.views.stages_lab_words import scaled

if TYPE_CHECKING:
    from vramscope.theory.held import Held

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_PLAIN = ("task", "precision", "tune", "optimizer")
_SHAPES = ("batch", "image", "seq", "new-tokens")


def value(metric: str, found: int | float | None) -> tuple[str, str]:
    """A metric's name without its unit, and its value with it: ``("saved", "32.0 MiB (33,554,432 bytes)")``."""
    name, _, unit = metric.rpartition("_")
    if found is None:
        return metric.replace("_", " "), "not known"
    if unit == "bytes":
        return name.replace("_", " ") or "bytes", f"{format_bytes(round(found))} ({found:,} bytes)"
    if unit == "flops":
        return f"{name} FLOPs", f"{scaled(round(found))} ({found:,})"
    if metric == "seconds":
        return "time", seconds(found)
    if metric == "flops_per_s":
        return "rate", rate(found)
    return metric.replace("_", " "), f"{found:,}" if isinstance(found, int) else f"{found:,.4g}"


def seconds(found: float) -> str:
    """Three figures in the unit that leaves at least 1 (``273 µs``)."""
    factor, unit = next((each for each in _TIMES if found >= each[0]), _TIMES[-1])
    return f"{found / factor:,.3g} {unit}" if found < 1000 else f"{found:,.0f} s"


def rate(found: float) -> str:
    """``25.5 TFLOPS``."""
    return f"{found / 1e12:,.1f} TFLOPS"


def grounds(formula: Formula) -> str:
    """What it rests on and who says so."""
    return resting(formula.assumption, formula.source)


def resting(assumption: str, source: str) -> str:
    """An assumption with its source behind it."""
    return f"{assumption} [{source}]"


def operations(found: int | float) -> str:
    """``270 T``."""
    return scaled(round(found))


def given(figures: Mapping[str, object]) -> str:
    """``inputs=4096, outputs=11008``."""
    return ", ".join(f"{name}={figure}" for name, figure in figures.items())


def sum_of(claim: Claim) -> str:
    """``half weights 2 + half gradients 2``."""
    return " + ".join(f"{name} {size}" for name, size in claim.parts)


def per_parameter(found: float | None) -> str:
    """Bytes, as short as can be; where they follow from the shapes, that."""
    return "by shape" if found is None else f"{found:.0f}" if found == int(found) else f"{found:.2f}"


def sheet_subject(found: Sheet) -> str:
    """What the sheet is of."""
    card = f" · {found.card}, {format_gib(found.card_bytes)} GiB" if found.card_bytes else ""
    return f"{found.parameters:,} parameters{card}"


def subject(found: Held) -> str:
    """``timm/resnet18 (ResNet) · batch 4, image 64 · fp32, full, adam · rtx-3060``."""
    shapes = ", ".join(f"{name} {found.positions[name]}" for name in _SHAPES if name in found.positions)
    others = ", ".join(_position(*each) for each in found.positions.items() if each[0] not in _SHAPES)
    return f"{found.source} ({found.model}) · {shapes} · {others} · {found.card}"


def _position(name: str, position: str) -> str:
    """A position that says what it is, or with its knob's name."""
    return position if name in _PLAIN else f"{name} {position}"


def size(found: Held) -> str:
    """How many parameters, and how many of them train."""
    trained = "all of them train" if found.trained == found.parameters else f"{found.trained:,} of them train"
    return f"{found.parameters:,} parameters, {trained if found.trained else 'none of them train'}"


def peaks(found: Held) -> str:
    """The peaks of the run."""
    result = found.result
    parts = (
        ("allocated", result.peak_allocated_bytes),
        ("reserved", result.peak_reserved_bytes),
        ("process total", result.process_total_bytes),
    )
    told = ", ".join(f"{name} {format_bytes(peak)}" for name, peak in parts if peak is not None)
    verdict = "" if result.fits else "; it does not fit, so this is of a run on memory without end"
    return f"{told}{verdict}"


def columns(found: Held) -> tuple[tuple[str, str], ...]:
    """What the columns and the last line of the table are."""
    rounding, unsplit = (
        sum(getattr(row, name) for row in found.rows) for name in ("rounding_bytes", "unsplit_bytes")
    )
    peak = format_bytes(found.result.peak_allocated_bytes or 0)
    return (
        ("beyond", "what no formula explains; formula + beyond + rounding + unsplit = run"),
        ("rounding", f"{format_bytes(rounding)}: blocks are multiples of 512 bytes"),
        ("unsplit", f"{format_bytes(unsplit)}: the allocator does not split small rests off its blocks"),
        ("sum", f"each category when it held most, which is not at the same time: the peak is {peak}"),
    )


def category(name: str) -> str:
    """A category's row."""
    return plural(name)


def flops(found: Held) -> str:
    """A step's operations, by formula and by torch's counter."""
    ours, theirs = found.flops_formula, found.flops_counted
    if ours is None or theirs is None:
        known = ours if theirs is None else theirs
        return f"{scaled(known)} in a step" if known else "not known"
    if ours == theirs:
        return f"{scaled(ours)} in a step by the layers' formulas; torch's counter has the same {theirs:,}"
    why = f": {found.flops_why}" if found.flops_why else ""
    return (
        f"{scaled(ours)} in a step by the layers' formulas, {scaled(theirs)} by torch's counter, "
        f"{100 * (ours - theirs) / theirs:+.1f} %{why}"
    )
