"""Sentences of the staged measurement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from vramscope.lab.stages.value import FORWARD, INPUT, NO_GRAD, STEP, Holds, Reading, Staged
from vramscope.run.categories import plural
from vramscope.units import format_bytes, format_gib
from vramscope.views.figures import change
from vramscope.views.plan_words import count, failed

_LISTED = 4
"""So many reasons of a jump are told."""
_SHARE = 0.02
"""Reasons that are smaller than this part of the largest one are left out."""
_NOTHING = Holds()


def subject(staged: Staged) -> str:
    """``timm/resnet50 (ResNet) · batch 90, image 224 · rtx-3060, 11.76 GiB``."""
    shapes = ", ".join(f"{name} {size}" for name, size in staged.shapes.items())
    precision = "" if staged.precision == "fp32" else f" · {staged.precision}"
    card = f"{staged.card}, {format_gib(staged.capacity_bytes)} GiB"
    return f"{staged.source} ({staged.kind}) · {shapes}{precision} · {card}"


def summary(staged: Staged) -> str:
    """The article's line: parameters, FLOPs, activations; and who counted them."""
    parts = [f"{scaled(staged.parameters)} parameters"]
    counted = staged.counted
    if counted is not None:
        if counted.flops is not None:
            parts.append(f"{scaled(counted.flops)} FLOPs, each a {counted.unit}")
        if counted.activations is not None:
            parts.append(f"{scaled(counted.activations)} activations")
        parts.append(f"counted in a forward by {counted.by}")
    return " · ".join(parts)


def scaled(number: int) -> str:
    """``23.7 M``: three figures."""
    return count(number, "G")


def trouble(staged: Staged) -> str:
    """Why the prediction ends early; nothing if it does not."""
    if staged.failure is not None:
        return f"does not fit: out of memory {failed(staged.failure)}"
    return f"broke off: {staged.why_not}" if staged.why_not else ""


def error(reading: Reading) -> str:
    """``+0.3 %``: the prediction against what is known; nothing where nothing is."""
    if reading.error is None:
        return ""
    text = f"{abs(100 * reading.error):.1f}"
    sign = "" if text == "0.0" else "+" if reading.error > 0 else "−"
    return f"{sign}{text} %"


def jumps(staged: Staged, unit: str) -> Iterator[tuple[str, str]]:
    """For each stage that changed what is reserved, why."""
    before: Reading | None = None
    for reading in staged.readings:
        sentence = jump(before, reading, unit)
        if sentence:
            yield reading.stage, sentence
        before = reading


def jump(before: Reading | None, now: Reading, unit: str) -> str:
    """``+7,252: activations +7,100, …``; nothing where nothing changed or nothing was followed."""
    if now.holds is None:
        return ""
    then = before.holds if before and before.holds else _NOTHING
    difference = change(now.holds.reserved_bytes - then.reserved_bytes, unit)
    if not difference and not now.retries:
        return ""
    weighty = [(what, change(size, unit)) for what, size in _weighty(reasons(then, now.holds))]
    told = ", ".join(f"{what} {size}" for what, size in weighty if size)
    retried = (
        f"; the card was full {_times(now.retries)}, and the cache was given back" if now.retries else ""
    )
    return f"{difference or '0'}: {told}{retried}"


def reasons(then: Holds, now: Holds) -> list[tuple[str, int]]:
    """What the change of reserved consists of; the sizes add up to it."""
    names = dict.fromkeys((*now.live, *then.live))
    found = [(plural(name), now.live.get(name, 0) - then.live.get(name, 0)) for name in names]
    found.append(("segment rounding and holes", now.unused_bytes - then.unused_bytes))
    found += [(f"cached {plural(name)}", size) for name, size in now.cached.items()]
    found.append(("what was cached before", -sum(then.cached.values())))
    return [each for each in found if each[1]]


def _weighty(found: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    ordered = sorted(found, key=lambda each: -abs(each[1]))
    least = abs(ordered[0][1]) * _SHARE if ordered else 0
    return [each for each in ordered[:_LISTED] if abs(each[1]) >= least]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def kept(staged: Staged) -> str:
    """What is kept for backward after the forward, by who asked for it, beside what was counted."""
    if not staged.activations:
        return ""
    largest = list(staged.activations.items())[:3]
    told = ", ".join(f"{kind or 'no module'} {format_bytes(size)}" for kind, size in largest)
    return f"{format_bytes(sum(staged.activations.values()))}: {told}{_counted(staged)}"


def _counted(staged: Staged) -> str:
    """``; fvcore counts 5.44 GiB``: the formula's A."""
    readings = {reading.stage: reading.formula_bytes for reading in staged.readings}
    after, before = readings[FORWARD], readings[NO_GRAD]
    if staged.counted is None or after is None or before is None:
        return ""
    return f"; {staged.counted.by} counts {format_bytes(after - before)}"


def per_parameter(staged: Staged) -> str:
    """What the step reserves beside the input, in bytes a parameter; nothing where it is not known."""
    readings = {reading.stage: reading for reading in staged.readings}
    step, x = readings[STEP], readings[INPUT].formula_bytes
    if step.predicted_bytes is None or step.formula_bytes is None or x is None or not staged.parameters:
        return ""
    found = (step.predicted_bytes - x) / staged.parameters
    formula = (step.formula_bytes - x) / staged.parameters
    return f"{found:.1f} bytes reserved after the step, beside the input; {formula:.0f} in the formula"


def agreement(found: Sequence[Staged]) -> str:
    """How near the predictions come to what is known; nothing where nothing is."""
    errors = [abs(each.error) for staged in found for each in staged.readings if each.error is not None]
    if not errors:
        return ""
    near = sum(each <= 0.02 for each in errors)
    return (
        f"{near} of {len(errors)} readings above zero within 2 %; error {100 * median(errors):.1f} % in the median, "
        f"{100 * max(errors):.1f} % at most"
    )
