"""Where a program's phases begin, as far as stacks and torch's own annotations tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from vramscope.run.actions import ALLOC, SEGMENT_ALLOC, SEGMENT_MAP
from vramscope.run.events import Events
from vramscope.run.imported.stacks import BACKWARD, FORWARD, PYTHON, STEP, ZERO_GRAD
from vramscope.run.trace import Column, Span

NEUTRAL, SILENT, IN_FORWARD, IN_BACKWARD, IN_STEP, IN_ZERO_GRAD = range(6)
"""What an event says: nothing of a phase; nothing at all, for it has no stack; or its phase."""
_PHASES = {
    IN_FORWARD: "forward",
    IN_BACKWARD: "backward",
    IN_STEP: "optimizer_step",
    IN_ZERO_GRAD: "zero_grad",
}
_ANNOTATED = (("Optimizer.step#", IN_STEP), ("Optimizer.zero_grad#", IN_ZERO_GRAD))
"""What torch's optimizers call themselves for profilers (profile_hook_step in torch/optim/optimizer.py)."""
_ASKING = (ALLOC, SEGMENT_ALLOC, SEGMENT_MAP)

Annotation = tuple[str, bool, int]
"""Its name, whether it begins, and when in microseconds."""


def spans_of(
    events: Events, says: Column, stacks: Column, annotations: Sequence[Annotation], begins_empty: bool
) -> tuple[Span, ...]:
    """The phases of a history; `says` are the bits of `stacks` and `stacks` the stack's number, per event.

    Only events that ask for memory tell: torch keeps the allocation's stack for most that free it."""
    asks = np.isin(events.action, _ASKING)
    told = np.where(asks, _told(says), NEUTRAL)
    asks = asks | _annotate(told, events.time_us, annotations)
    deciding = np.flatnonzero(asks)
    changes = deciding[np.diff(told[deciding], prepend=-1) != 0]
    phase = "init" if begins_empty else "other"
    found = [Span(0, phase, None, stack=0)]
    for moment, code in zip(changes.tolist(), told[changes].tolist(), strict=True):
        after = _next(phase, code, bool((says & PYTHON).any()))
        if after != phase:
            phase = after
            found.append(Span(moment, phase, None, stack=int(stacks[moment])))
    spans = _stepped(_without_empty(found))
    return _timed([_placed(span, end, says, stacks) for span, end in _with_ends(spans, len(events))], events)


def spans_told(births: Iterable[tuple[int, str, int | None]], events: Events) -> tuple[Span, ...]:
    """The phases of an exported run, which each block's metadata tells: moment, phase and step of its birth."""
    found: list[Span] = []
    for moment, phase, step in sorted(birth for birth in births if birth[0] >= 0 and birth[1]):
        if not found or (found[-1].phase, found[-1].step) != (phase, step):
            found.append(Span(moment if found else 0, phase, step))
    return _timed(found, events)


def _with_ends(spans: Sequence[Span], moments: int) -> Iterator[tuple[Span, int]]:
    return zip(spans, [*(span.first for span in spans[1:]), moments], strict=True)


def _placed(span: Span, end: int, says: Column, stacks: Column) -> Span:
    """A backward begins on autograd's threads: where it was called, the first event with a stack tells."""
    if span.phase != "backward" or span.stack:
        return span
    within = slice(span.first, end)
    told = np.flatnonzero((says[within] & BACKWARD > 0) & (stacks[within] > 0))
    return replace(span, stack=int(stacks[within][told[0]])) if len(told) else span


def _told(says: Column) -> Column:
    conditions = [says & BACKWARD > 0, says & STEP > 0, says & ZERO_GRAD > 0, says & FORWARD > 0, says == 0]
    found: Column = np.select(conditions, [IN_BACKWARD, IN_STEP, IN_ZERO_GRAD, IN_FORWARD, SILENT], NEUTRAL)
    return found


def _annotate(told: Column, times: Column, annotations: Sequence[Annotation]) -> Column:
    """Sets what annotations tell of the events within them; returns which ones those are."""
    within = np.zeros(len(told), np.bool_)
    open_since: dict[str, int] = {}
    for name, begins, time in annotations:
        code = next((code for start, code in _ANNOTATED if name.startswith(start)), None)
        if code is None:
            continue
        if begins:
            open_since[name] = time
        elif name in open_since:
            chosen = slice(*np.searchsorted(times, [open_since.pop(name), time + 1]))
            told[chosen], within[chosen] = code, True
    return within


def _next(phase: str, code: int, has_stacks: bool) -> str:
    """The phase after an event: what it says, or what may go on without a word of it.

    The threads of autograd run no Python: what has no stack once there was a forward is a backward."""
    if code in _PHASES:
        return _PHASES[code]
    if code == SILENT:
        return "backward" if has_stacks and phase in ("forward", "backward") else phase
    return phase if phase in ("init", "forward") else "other"


def _without_empty(spans: Sequence[Span]) -> list[Span]:
    """Of spans that begin at one moment only the last has any event."""
    return [
        span
        for span, after in zip(spans, [*spans[1:], None], strict=True)
        if not after or after.first > span.first
    ]


def _stepped(spans: Sequence[Span]) -> list[Span]:
    """With steps: each ends with an optimizer's step, and the zero_grad after it; None where none steps."""
    if not any(span.phase == "optimizer_step" for span in spans):
        return list(spans)
    step, found, ended = 1, [], False
    for span in spans:
        if ended and span.phase not in ("zero_grad", "optimizer_step"):
            step, ended = step + 1, False
        ended = ended or span.phase == "optimizer_step"
        found.append(replace(span, step=step))
    return found


def _timed(spans: Sequence[Span], events: Events) -> tuple[Span, ...]:
    """With the time of their first event, where torch told times."""
    if not len(events) or not events.time_us.any():
        return tuple(spans)
    return tuple(replace(each, time_us=int(events.time_us[each.first])) for each in spans)
