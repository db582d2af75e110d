from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import builders
from traces import Story, training_story
from vramscope.analysis.stages import Stage, Stages, stages
from vramscope.run.curves import allocated_curve
from vramscope.run.trace import Trace


def only(found: Stages) -> dict[str, Stage]:
    """The stages of a run's only stretch, by name."""
    assert len(found.stretches) == 1
    return {stage.name: stage for stage in found.stretches[0].stages}


def marked() -> Trace:
    """Two models are built, the second one is dropped, and a third mark ends nothing but that."""
    story = Story().span("init", 1, mark="model 1 built")
    story.alloc(1 << 20, "parameter")
    story.span("init", 1, mark="model 2 built")
    second = story.alloc(2 << 20, "parameter")
    story.alloc(512, "buffer")
    story.span("init", 1, mark="model 2 gone")
    story.free(second)
    story.span("forward", 1)
    story.alloc(4096, "activation")
    return story.trace()


def test_a_mark_ends_what_came_since_the_one_before():
    found = stages(marked())
    rows = only(found)

    assert found.by == "marks"
    assert found.stretches[0].kind == "whole"
    assert list(rows) == ["model 1 built", "model 2 built", "model 2 gone", ""]
    assert [row.allocated_bytes for row in rows.values()] == [
        1 << 20,
        (3 << 20) + 512,
        (1 << 20) + 512,
        1053184,
    ]
    assert [row.change_bytes for row in rows.values()] == [1 << 20, (2 << 20) + 512, -(2 << 20), 4096]
    assert [row.allocations for row in rows.values()] == [1, 2, 0, 1]
    assert found.peak == (0, 1)


def test_a_stage_begins_with_what_was_there():
    """As torch's counters have it after a reset."""
    gone = only(stages(marked()))["model 2 gone"]

    assert gone.peak_allocated_bytes == (3 << 20) + 512
    assert gone.peak_reserved_bytes == gone.reserved_bytes == (3 << 20) + 512


def test_a_mark_takes_in_the_phases_before_it():
    story = Story().span("init", 1)
    story.alloc(512)
    story.span("forward", 1, mark="ran")
    story.alloc(1024)

    rows = only(stages(story.trace()))

    assert (rows["ran"].allocations, rows["ran"].change_bytes, rows["ran"].times) == (2, 1536, 1)


def test_by_phase_of_the_first_and_the_last_complete_step():
    found = stages(training_story().trace())

    assert found.by == "phases"
    assert [(each.kind, each.step) for each in found.stretches] == [("first", 1), ("steady", 2)]
    names = [[stage.name for stage in stretch.stages] for stretch in found.stretches]
    assert names[0] == ["init", "forward", "backward", "optimizer_step", "zero_grad", "other"]
    assert names[1] == names[0][1:]
    assert found.peak == (1, 1)


def test_the_changes_of_a_step_sum_to_what_it_kept():
    trace = training_story().trace()
    first, steady = stages(trace).stretches

    assert sum(stage.change_bytes for stage in first.stages) == first.stages[-1].allocated_bytes
    assert sum(stage.change_bytes for stage in steady.stages) == 0
    assert steady.stages[-1].allocated_bytes == allocated_curve(trace)[-1]


def test_micro_batches_are_told_together():
    story = Story()
    for _ in range(3):
        story.span("forward", 1)
        kept = story.alloc(1024, "activation")
        story.span("backward", 1)
        story.alloc(512, "gradient")
        story.free(kept)
    story.span("optimizer_step", 1)

    forward, backward, _ = stages(story.trace()).stretches[0].stages

    assert (forward.times, forward.allocations, forward.change_bytes) == (3, 3, 3 * 1024)
    assert (backward.times, backward.change_bytes) == (3, 3 * (512 - 1024))
    assert forward.peak_allocated_bytes == 1024 + 2 * 512
    assert (forward.first, backward.end) == (0, story.moment)


def steps(*peaks: int) -> Trace:
    """A step for each peak, which is freed again."""
    story = Story()
    for number, size in enumerate(peaks, 1):
        story.span("forward", number)
        block = story.alloc(size)
        story.span("optimizer_step", number)
        story.free(block)
    return story.trace()


@pytest.mark.parametrize(
    ("peaks", "kinds"),
    [
        ((512,), [("first", 1)]),
        ((512, 1024, 1024), [("first", 1), ("steady", 3)]),
        ((512, 4096, 1024), [("first", 1), ("highest", 2), ("steady", 3)]),
        ((4096, 4096, 512), [("first", 1), ("steady", 3)]),
    ],
)
def test_the_highest_step_is_told_where_no_other_shows_the_peak(
    peaks: tuple[int, ...], kinds: list[tuple[str, int]]
):
    found = stages(steps(*peaks))

    assert [(each.kind, each.step) for each in found.stretches] == kinds
    assert found.peak is not None
    stretch, place = found.peak
    assert found.stretches[stretch].stages[place].peak_allocated_bytes == max(peaks)


def test_what_follows_the_last_step():
    story = training_story().span("evaluation", 3)
    story.alloc(1024)

    assert [each.kind for each in stages(story.trace()).stretches] == ["first", "steady", "after"]


def test_a_step_that_was_broken_off():
    found = stages(training_story().trace(), builders.out_of_memory())

    assert [(each.kind, each.step) for each in found.stretches] == [("first", 1), ("cut", 2)]


@pytest.mark.parametrize(("report", "kind"), [(None, "whole"), (builders.out_of_memory(), "cut")])
def test_without_a_complete_step_all_is_one_stretch(report: object, kind: str):
    story = Story().span("init", 1)
    story.alloc(512)

    found = stages(story.trace(), report)  # type: ignore[arg-type]

    assert [(each.kind, each.step) for each in found.stretches] == [(kind, None)]


def test_time():
    story = Story().span("init", 1)
    story.alloc(512)
    story.span("forward", 1)
    story.alloc(512)
    trace = story.trace()

    assert [stage.time_us for stage in stages(trace).stretches[0].stages] == [2000, 1000]


def test_without_a_clock_no_time_is_known():
    trace = marked()

    found = stages(replace(trace, times_us=np.zeros_like(trace.times_us)))

    assert {stage.time_us for stage in found.stretches[0].stages} == {None}


def test_what_was_there_before_the_history():
    trace = steps(512)
    before = replace(trace.blocks, born=np.array([-1]))

    first = stages(replace(trace, blocks=before)).stretches[0].stages[0]

    assert (first.allocated_bytes, first.change_bytes, first.allocations) == (512, 0, 0)


@pytest.mark.parametrize("trace", [Story().trace(), replace(training_story().trace(), spans=())])
def test_no_stages(trace: Trace):
    found = stages(trace)

    assert sum(stage.allocations for each in found.stretches for stage in each.stages) == 0
