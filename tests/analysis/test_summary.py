from __future__ import annotations

from dataclasses import replace

from traces import Story, training_story
from vramscope.analysis.summary import Recorded, summary
from vramscope.run.run import Run


def test_summary():
    run = training_story().run()

    found = summary(run, run.trace)

    assert (found.origin, found.name, found.steps) == ("imported", "story", 2)
    assert found.peak is not None
    assert found.trace == Recorded(1, 0, found.peak.allocated_bytes, 214_016)
    assert found.others == ()
    assert found.events == run.traces[0].moments


def test_the_other_processes_and_cards():
    first = training_story().trace()
    run = Run(None, traces=(first, replace(first, pid=2, device=3)))

    found = summary(run, run.traces[1])

    assert [(each.process, each.device) for each in found.others] == [(1, 0)]
    assert found.trace is not None
    assert (found.trace.process, found.trace.device) == (2, 3)


def test_what_was_there_before_the_history_counts():
    """The first event may be that the highest state ends."""
    story = Story().span("other")
    block = story.alloc(4096)
    story.free(block)
    trace = story.trace()
    cut = replace(trace, whole=False, notes=("it began late",))
    cut.blocks.born[0] = -1

    found = summary(replace(story.run(), traces=(cut,)), cut)

    assert found.trace is not None
    assert found.trace.peak_allocated_bytes == 4096
    assert (found.whole, found.notes) == (False, ("it began late",))


def test_nothing_recorded():
    found = summary(Run(None, name="empty"), None)

    assert (found.trace, found.peak, found.events) == (None, None, 0)
