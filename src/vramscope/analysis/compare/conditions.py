"""What two runs were made under, as far as it differs: the first thing to look at before their figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vramscope.analysis.compare.figures import Condition
from vramscope.analysis.compare.side import Side, about
from vramscope.analysis.layers import Sizes
from vramscope.run.report import Report
from vramscope.units import format_bytes

_ALLOCATOR = "allocator"


def conditions(a: Side, b: Side) -> tuple[Condition, ...]:
    """All that differs and is known of both."""
    found = [*_of_runs(a, b), *_of_reports(a.report, b.report)]
    if not any(each.name == _ALLOCATOR for each in found):
        found += _of_traces(a, b)
    return tuple(found)


def _of_runs(a: Side, b: Side) -> Iterator[Condition]:
    one, other = about(a), about(b)
    if a.steps or b.steps:
        yield from _differing("complete steps", str(a.steps), str(b.steps))
    if one.ended or other.ended:
        yield from _differing("ended", one.ended or "as it should", other.ended or "as it should")
    yield from _differing("model", _models(a), _models(b))
    if len(a.run.traces) and len(b.run.traces):
        yield from _differing("processes and cards", str(len(a.run.traces)), str(len(b.run.traces)))


def _of_reports(a: Report | None, b: Report | None) -> Iterator[Condition]:
    if a is None or b is None:
        return
    yield from _differing("program", " ".join(a.program), " ".join(b.program))
    yield from _differing("card", a.card.name, b.card.name)
    yield from _differing("cards", str(a.gpus), str(b.gpus))
    yield from _differing("memory", _memory(a), _memory(b))
    for name, key in (("torch", "torch"), ("CUDA", "cuda"), ("cuDNN", "cudnn"), (_ALLOCATOR, "allocator")):
        yield from _differing(name, getattr(a.versions, key), getattr(b.versions, key))
    yield from _differing("module loading", a.outside.loading or None, b.outside.loading or None)


def _of_traces(a: Side, b: Side) -> Iterator[Condition]:
    """The allocator's settings, one by one, as its own snapshot tells them."""
    if a.trace is None or b.trace is None:
        return
    one, other = a.trace.settings, b.trace.settings
    for name in sorted(set(one) & set(other)):
        yield from _differing(name, _shown(one[name]), _shown(other[name]))


def _models(side: Side) -> str | None:
    """The classes of the outermost modules that hold anything."""
    roots = side.layers.roots if side.layers else ()
    return ", ".join(root.path for root in roots if root.total != Sizes()) or None


def _memory(report: Report) -> str:
    return "unlimited" if report.capacity_bytes is None else format_bytes(report.capacity_bytes)


def _shown(value: Any) -> str:
    return "not set" if value in (None, "") else str(value)


def _differing(name: str, a: str | None, b: str | None) -> Iterator[Condition]:
    if a is not None and b is not None and a != b:
        yield Condition(name, a, b)
