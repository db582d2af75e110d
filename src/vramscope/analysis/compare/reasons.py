"""Why one run's figures differ from another's, or why they don't: sentences from the numbers of both."""

from __future__ import annotations

from collections.abc import Iterator

from vramscope.analysis.compare.figures import Comparison, Reason
from vramscope.analysis.compare.side import Side
from vramscope.analysis.compare.why import one_froze, phase_words, why
from vramscope.run.categories import ACTIVATION, CATEGORIES, plural
from vramscope.units import format_bytes

NOTABLE = 0.005
"""A change of less than this share of the peak needs no reason."""


def reasons(a: Side, b: Side, found: Comparison) -> tuple[Reason, ...]:
    """Those of the categories, the weightiest first, then those of the peak as a whole."""
    if a.trace is None or b.trace is None:
        return ()
    changes = {each: b.highest[each] - a.highest[each] for each in CATEGORIES}
    least = max(NOTABLE * max(max(_peak(a), _peak(b)), 1), 1)
    told = [
        Reason(category, _sentence(category, changes[category], a, b, found), changes[category])
        for category in sorted(CATEGORIES, key=lambda each: -abs(changes[each]))
        if abs(changes[category]) >= least
    ]
    told += _unchanged_activations(a, b, changes, least)
    told += _moved_peak(a, b)
    told += _cached(a, b, least)
    return tuple(told)


def _peak(side: Side) -> int:
    return side.peak.allocated_bytes if side.peak else 0


def _sentence(category: str, change: int, a: Side, b: Side, found: Comparison) -> str:
    moved = f"{plural(category)} {'rose' if change > 0 else 'fell'} by {format_bytes(abs(change))}"
    told = "; ".join(why(category, a, b, found))
    return f"{moved}: {told}" if told else moved


def _unchanged_activations(a: Side, b: Side, changes: dict[str, int], least: float) -> Iterator[Reason]:
    """Freezing saves gradients and states; that it saves no activations surprises."""
    one, other = a.highest[ACTIVATION], b.highest[ACTIVATION]
    if one_froze(a, b) and one and other and abs(changes[ACTIVATION]) < least:
        sentence = (
            f"activations did not change ({format_bytes(other)}): frozen layers still run forward, and "
            "backward through them needs what they keep"
        )
        yield Reason(ACTIVATION, sentence, changes[ACTIVATION])


def _moved_peak(a: Side, b: Side) -> Iterator[Reason]:
    if a.peak is None or b.peak is None or a.peak.phase == b.peak.phase:
        return
    if a.peak.phase is None or b.peak.phase is None:
        return
    moved = f"{phase_words(b.peak.phase)} instead of {phase_words(a.peak.phase)}"
    sentence = f"the peak is in {moved}, so other memory is live at it"
    yield Reason("peak", sentence, b.peak.allocated_bytes - a.peak.allocated_bytes)


def _cached(a: Side, b: Side, least: float) -> Iterator[Reason]:
    """What is reserved and not allocated when allocated peaks."""
    if a.peak is None or b.peak is None:
        return
    change = b.peak.cached_bytes - a.peak.cached_bytes
    if abs(change) >= least:
        moved = f"{'rose' if change > 0 else 'fell'} by {format_bytes(abs(change))}"
        both = f"{format_bytes(b.peak.cached_bytes)} instead of {format_bytes(a.peak.cached_bytes)}"
        sentence = f"memory that is reserved but in no tensor at the allocated peak {moved}: {both}"
        yield Reason("cached", sentence, change)
