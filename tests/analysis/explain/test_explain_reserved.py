from __future__ import annotations

from dataclasses import replace

import numpy as np

import builders
from asking import MIB, ask, blocks_with, facts, figures, segments_with, the_answer
from traces import Story
from vramscope.analysis.explain.finding import ANOTHER_RUN, UNTRIED
from vramscope.analysis.explain.reserved import EXPANDABLE, reserved_above_allocated
from vramscope.run.run import Run
from vramscope.run.trace import Trace


def fragmented() -> Story:
    """A small activation holds a large segment open, another is empty, and a request fits neither."""
    story = Story().span("forward", 1)
    open_, cached = story.segment(20 * MIB), story.segment(10 * MIB)
    big = story.alloc(16 * MIB, "temporary", segment=open_)
    story.alloc(2 * MIB, "activation", module="Net.a", line=7, segment=open_)
    gone = story.alloc(10 * MIB, "workspace", segment=cached)
    story.free(big)
    story.free(gone)
    story.span("backward", 1)
    story.alloc(24 * MIB, "gradient", module="Net.b", segment=story.segment(26 * MIB))
    return story


def test_where_the_free_bytes_lay():
    found = the_answer(reserved_above_allocated, fragmented())

    assert found.question == "Why does reserved exceed allocated by 30.0 MiB?"
    assert figures(found) == {"held open": 18 * MIB, "cached whole": 10 * MIB, "just taken": 2 * MIB}
    assert found.stake_bytes == sum(figures(found).values())
    assert [each.note for each in found.evidence[:2]] == [
        "1 segment more than half free; 18.0 MiB in one that 2.00 MiB keeps: activation of Net.a, train.py:7 in main",
        "1 segment with nothing in it, left by workspaces",
    ]


def test_the_request_that_fitted_nowhere():
    found = the_answer(reserved_above_allocated, fragmented())

    assert found.answer == (
        "Reserved grew to its peak of 56.0 MiB in backward, step 1, for Net.b, for a block of 24.0 MiB that fitted no "
        "free piece (the largest had 16.0 MiB). 26.0 MiB of it were allocated then. On a full card the allocator "
        "would give 10.0 MiB back before it fails."
    )


def test_a_gap_below_a_twentieth_is_no_puzzle():
    story = Story().span("forward", 1)
    story.alloc(96 * MIB, "activation", segment=story.segment(100 * MIB))

    assert ask(reserved_above_allocated, story) == []


def test_a_gap_at_another_moment_than_the_peak_is_none():
    """What is freed later leaves reserved where it is: that is the cache at work."""
    story = Story().span("forward", 1)
    story.free(story.alloc(100 * MIB, "activation"))

    assert ask(reserved_above_allocated, story) == []


def test_a_peak_from_before_the_history():
    """What it grew for is not known; what was free when most of it was in use is."""
    story = Story().span("other")
    homes = [story.segment(50 * MIB), story.segment(50 * MIB)]
    story.free(story.alloc(10 * MIB, segment=homes[0], line=3))
    story.alloc(30 * MIB, segment=homes[1], line=4)
    before = segments_with(story.trace(), born=np.array([-1, -1], np.int64))

    found = the_answer(reserved_above_allocated, before)

    assert found.answer.startswith(
        "Reserved was at its peak of 100 MiB when the history began. Most of it, 30.0 MiB, was allocated at "
        "train.py:4 in main."
    )
    assert figures(found) == {"cached whole": 50 * MIB, "remainders": 20 * MIB}


def test_other_streams_and_private_pools():
    story = Story().span("forward", 1)
    for size in (10, 30, 50):
        story.free(story.alloc(size * MIB, "temporary"))
    story.alloc(60 * MIB, "activation")
    trace = segments_with(
        replace(story.trace(), streams=(0, 7), pools=((0, 0), (0, 1))),
        stream=np.array([1, 0, 0, 0], np.int32),
        pool=np.array([0, 1, 0, 0], np.int32),
    )

    found = the_answer(reserved_above_allocated, trace)

    assert figures(found) == {"private pools": 30 * MIB, "other streams": 10 * MIB, "cached whole": 50 * MIB}


def test_blocks_that_another_stream_still_uses():
    story = Story().span("forward", 1)
    first = story.alloc(40 * MIB, "temporary")
    story.free(first)
    story.alloc(60 * MIB, "activation")
    trace = story.trace()
    returned = trace.blocks.returned.copy()
    returned[first] = trace.moments

    found = the_answer(reserved_above_allocated, blocks_with(trace, returned=returned))

    assert figures(found) == {"awaiting": 40 * MIB}
    assert "give" not in found.answer


def expandable() -> Trace:
    """Three mapped pieces that follow each other, in which one block lies across two."""
    story = Story().span("forward", 1)
    pieces = [story.segment(20 * MIB) for _ in range(3)]
    first = story.alloc(30 * MIB, "temporary", segment=pieces[0])
    story.segments[pieces[1]]["used"] = 10 * MIB
    story.alloc(8 * MIB, "activation", segment=pieces[1])
    story.free(first)
    pieces.append(story.segment(20 * MIB))
    story.segments[pieces[2]]["used"] = 0
    story.alloc(40 * MIB, "activation", segment=pieces[2])
    trace = story.trace()
    return segments_with(trace, expandable=np.ones(4, bool))


def test_expandable_memory_is_one():
    found = the_answer(reserved_above_allocated, expandable())

    assert figures(found) == {"between blocks": 32 * MIB}
    assert found.evidence[0].note == "in expandable segments, the largest piece 30.0 MiB"
    assert found.remedies == ()


def test_what_expandable_segments_would_save_is_not_known():
    (remedy,) = the_answer(reserved_above_allocated, fragmented()).remedies

    assert (remedy.change, remedy.saved_bytes, remedy.known) == (EXPANDABLE, None, UNTRIED)


def test_another_run_shows_it():
    other = replace(fragmented().run(), traces=(segments_with(small().trace(), expandable=np.ones(1, bool)),))
    alike = small().run()

    (remedy,) = the_answer(reserved_above_allocated, fragmented(), alike, other).remedies

    assert (remedy.saved_bytes, remedy.known, remedy.of) == (16 * MIB, ANOTHER_RUN, "peak reserved")


def test_a_run_of_another_program_is_no_fair_comparison():
    trace = segments_with(small().trace(), expandable=np.ones(1, bool))
    mine = Run(builders.trained(), traces=(fragmented().trace(),))
    other = Run(replace(builders.trained(), program=("other.py",)), traces=(trace,))

    def noted(run: Run) -> str:
        (found,) = reserved_above_allocated(facts(mine.traces[0], run, run=mine))
        return found.remedies[0].note

    assert noted(other) == "but that run is of another program or card"
    assert noted(replace(mine, traces=(trace,))) == ""


def small() -> Story:
    story = Story().span("forward", 1)
    story.alloc(40 * MIB)
    return story
