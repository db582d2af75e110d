"""Each thing that analyses take for granted, broken once, is refused by name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from million import million_run
from traces import Story, training_story
from vramscope.errors import RunError
from vramscope.run.soundness import LATEST_US, require_sound
from vramscope.run.trace import Frame, Module, Span, Trace

TRACE = training_story().trace()
EVENTS = TRACE.moments


def blocks(**columns: Any) -> Trace:
    return replace(TRACE, blocks=replace(TRACE.blocks, **columns))


def segments(**columns: Any) -> Trace:
    return replace(TRACE, segments=replace(TRACE.segments, **columns))


def tables(**changes: Any) -> Trace:
    return replace(TRACE, tables=replace(TRACE.tables, **changes))


def last(column: np.ndarray, value: int) -> np.ndarray:
    """The column with another value in its last row."""
    found = column.copy()
    found[-1] = value
    return found


@pytest.mark.parametrize("trace", [TRACE, Story().trace(), *million_run(10_000).traces])
def test_sound(trace: Trace):
    require_sound(trace, "trace 0")


@pytest.mark.parametrize(
    ("trace", "fault"),
    [
        (replace(TRACE, device=128), "card is number 128, more than torch can count"),
        (tables(modules=()), "modules do not begin with that of no module"),
        (tables(modules=(Module("Net"),)), "modules do not begin with that of no module"),
        (tables(names=("a",)), "names do not begin with the empty one"),
        (tables(stacks=((0,),)), "stacks do not begin with the empty one"),
        (
            tables(stacks=((), (1,)), frames=(Frame("a", 1, "f"),)),
            "stacks name a frame that is not among its 1",
        ),
        (tables(stacks=((), (-1,))), "stacks name a frame that is not among"),
        (blocks(size_bytes=TRACE.blocks.size_bytes.astype("<i4")), "blocks size_bytes is no column of int64"),
        (blocks(flags=TRACE.blocks.flags[None]), "blocks flags is no column of uint8"),
        (blocks(flags=TRACE.blocks.flags[1:]), "blocks have columns of different lengths: {'address': 33"),
        (segments(small=TRACE.segments.small[1:]), "segments have columns of different lengths"),
        (replace(TRACE, times_us=TRACE.times_us[1:]), f"times are not one for each of {EVENTS} events"),
        (replace(TRACE, moments=EVENTS - 1), f"times are not one for each of {EVENTS - 1} events"),
        (replace(TRACE, moments=1 << 40), "events are 1099511627776, more than 67108864"),
        (replace(TRACE, times_us=last(TRACE.times_us, 0)), "times go back"),
        (replace(TRACE, times_us=last(TRACE.times_us, 1 << 60)), "times are outside the calendar"),
        (replace(TRACE, times_us=TRACE.times_us - 1), "times are outside the calendar"),
        (
            replace(TRACE, spans=(Span(0, "a", time_us=LATEST_US),)),
            "spans begin at times outside the calendar",
        ),
        (replace(TRACE, spans=()), "spans do not begin with the first event"),
        (replace(TRACE, spans=(Span(1, "a"),)), "spans do not begin with the first event"),
        (
            replace(TRACE, spans=(Span(0, "a"), Span(2, "a"), Span(1, "b"))),
            "spans do not begin one after the other",
        ),
        (
            replace(TRACE, spans=(Span(0, "a"), Span(EVENTS + 1, "a"))),
            "spans do not begin one after the other",
        ),
        (replace(TRACE, spans=(Span(0, "a", stack=99),)), "spans name a stack that is not there"),
        (blocks(born=last(TRACE.blocks.born, EVENTS)), f"blocks are born outside the {EVENTS} events"),
        (blocks(born=TRACE.blocks.born - 3), f"blocks are born outside the {EVENTS} events"),
        (blocks(born=last(TRACE.blocks.born, 1)), "blocks are not in the order of their birth"),
        (blocks(freed=last(TRACE.blocks.freed, EVENTS + 1)), "blocks are freed outside"),
        (blocks(freed=last(TRACE.blocks.freed, 3)), "blocks are freed outside the"),
        (blocks(freed=last(TRACE.blocks.freed, -1)), "blocks are freed outside the"),
        (blocks(returned=last(TRACE.blocks.returned, EVENTS + 1)), "blocks are returned outside the"),
        (blocks(returned=last(TRACE.blocks.returned, 0)), "blocks are returned outside the"),
        (segments(born=last(TRACE.segments.born, EVENTS)), "segments are born outside the"),
        (segments(freed=last(TRACE.segments.freed, 1)), "segments are freed outside the"),
        (blocks(size_bytes=last(TRACE.blocks.size_bytes, -1)), "blocks have sizes that cannot be"),
        (blocks(requested_bytes=last(TRACE.blocks.requested_bytes, -1)), "blocks have sizes that cannot be"),
        (blocks(size_bytes=TRACE.blocks.size_bytes * 0 + (1 << 61)), "blocks have sizes that cannot be"),
        (
            segments(size_bytes=last(TRACE.segments.size_bytes, 1 << 63 - 1)),
            "segments have sizes that cannot",
        ),
        (blocks(address=TRACE.blocks.address + np.uint64(1 << 63)), "blocks have addresses that cannot be"),
        (
            blocks(category=last(TRACE.blocks.category, 12)),
            "blocks category has a number that is not below 12",
        ),
        (blocks(module=last(TRACE.blocks.module, -1)), "blocks module has a number that is not below 4"),
        (blocks(name=last(TRACE.blocks.name, 99)), "blocks name has a number that is not below 10"),
        (blocks(stack=last(TRACE.blocks.stack, 99)), "blocks stack has a number that is not below"),
        (blocks(stream=last(TRACE.blocks.stream, 1)), "blocks stream has a number that is not below 1"),
        (blocks(segment=last(TRACE.blocks.segment, -1)), "blocks segment has a number that is not below 33"),
        (segments(stream=last(TRACE.segments.stream, 1)), "segments stream has a number that is not below 1"),
        (segments(pool=last(TRACE.segments.pool, 1)), "segments pool has a number that is not below 1"),
    ],
)
def test_broken(trace: Trace, fault: str):
    with pytest.raises(RunError, match=re.escape(f"its trace 0 {fault}")):
        require_sound(trace, "trace 0")
