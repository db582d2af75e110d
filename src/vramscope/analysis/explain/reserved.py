"""Why reserved exceeds allocated, and what another run shows of it."""

from __future__ import annotations

from collections.abc import Iterator

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import ANOTHER_RUN, RESERVED, UNTRIED, Evidence, Finding, Remedy
from vramscope.analysis.explain.growth import WHOLE, Growth, growth_of, largest_free_bytes, parts_of
from vramscope.analysis.explain.places import moment_place
from vramscope.run.curves import reserved_curve
from vramscope.run.run import Run
from vramscope.units import format_bytes

LEAST_SHARE = 0.05
"""A smaller part of reserved is no puzzle."""
EXPANDABLE = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


def reserved_above_allocated(facts: Facts) -> Iterator[Finding]:
    """The gap at the peak of reserved, by what kept its bytes from being used."""
    if facts.reserved.max() <= 0:  # an allocator whose segments are not known
        return
    growth = growth_of(facts)
    if growth.gap_bytes <= LEAST_SHARE * int(facts.reserved[growth.moment]):
        return
    parts = sorted(parts_of(growth), key=lambda each: -each.size_bytes)
    yield Finding(
        "reserved",
        f"Why does reserved exceed allocated by {format_bytes(growth.gap_bytes)}?",
        " ".join([_story(growth), *_given_back(parts)]),
        growth.gap_bytes,
        evidence=tuple(parts),
        remedies=tuple(_remedies(facts)),
    )


def _story(growth: Growth) -> str:
    facts, moment = growth.facts, growth.moment
    reserved, allocated = (format_bytes(int(each[moment])) for each in (facts.reserved, facts.allocated))
    place = moment_place(facts, moment)
    if int(facts.reserved.argmax()) == 0 and growth.row is None:
        return (
            f"Reserved was at its peak of {reserved} when the history began. Most of it, {allocated}, was "
            f"allocated {place}."
        )
    return f"Reserved grew to its peak of {reserved} {place}{_asked(growth)}. {allocated} of it were allocated then."


def _asked(growth: Growth) -> str:
    if growth.row is None:
        return ""
    size, largest = int(growth.facts.blocks.size_bytes[growth.row]), largest_free_bytes(growth)
    asked = f", for a block of {format_bytes(size)}"
    if not 0 < largest < size:
        return asked
    return f"{asked} that fitted no free piece (the largest had {format_bytes(largest)})"


def _given_back(parts: list[Evidence]) -> Iterator[str]:
    whole = sum(each.size_bytes for each in parts if each.label == WHOLE)
    if whole:
        yield f"On a full card the allocator would give {format_bytes(whole)} back before it fails."


def _remedies(facts: Facts) -> Iterator[Remedy]:
    """Expandable segments; what they save no replay of the recorded bytes can tell, but another run can."""
    if facts.trace.segments.expandable.any():
        return
    saved = [(_saved(facts, other), _unlike(facts.run, other)) for other in facts.others]
    known = [(size, unlike) for size, unlike in saved if size is not None]
    if known:
        size, unlike = max(known)
        yield Remedy(EXPANDABLE, size, ANOTHER_RUN, unlike, of=RESERVED)
    else:
        yield Remedy(EXPANDABLE, None, UNTRIED, of=RESERVED)


def _saved(facts: Facts, other: Run) -> int | None:
    """How much less another run reserved; None if it had no expandable segments either."""
    trace = other.trace
    if trace is None or not trace.moments or not trace.segments.expandable.any():
        return None
    return int(facts.reserved.max() - reserved_curve(trace).max())


def _unlike(run: Run, other: Run) -> str:
    """A warning where the two runs differ in more than settings."""
    reports = [each.report for each in (run, other)]
    told = [(each.program, each.card.id) for each in reports if each is not None]
    return "but that run is of another program or card" if len(set(told)) > 1 else ""
