from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import builders
from million import million_run
from traces import Story, training_story
from vramscope.analysis.timeline import timeline
from vramscope.run.curves import allocated_curve, category_curves, reserved_curve
from vramscope.run.run import Run


@pytest.fixture(scope="module")
def long() -> Run:
    return million_run(20_000)


def test_a_short_run_is_told_whole():
    trace = training_story().trace()

    found = timeline(trace)

    assert found.moments.tolist() == list(range(trace.moments))
    assert found.allocated.tolist() == allocated_curve(trace).tolist()
    assert found.times_us is not None
    assert found.times_us.tolist() == trace.times_us.tolist()


def test_no_peak_is_lost(long: Run):
    assert long.trace is not None
    found = timeline(long.trace, points=200)

    assert len(found.moments) <= 200 + 13
    assert found.total_moments == long.trace.moments
    assert found.allocated.max() == allocated_curve(long.trace).max()
    assert found.reserved.max() == reserved_curve(long.trace).max()
    whole = category_curves(long.trace).max(axis=1)
    assert sorted(int(curve.max()) for curve in found.categories.values()) == sorted(
        whole[whole > 0].tolist()
    )


def test_each_stretch_keeps_its_own_extremes(long: Run):
    """The least and the most of each step are there, not of the whole run alone."""
    assert long.trace is not None
    found, curve = timeline(long.trace, points=400), allocated_curve(long.trace)
    edges = np.linspace(0, long.trace.moments, 101).astype(int)

    for first, end in pairwise(edges):
        kept = found.allocated[(found.moments >= first) & (found.moments < end)]
        assert (kept.min(), kept.max()) == (curve[first:end].min(), curve[first:end].max())


@pytest.mark.parametrize("points", [50, 400])
def test_at_every_point_the_categories_sum_to_allocated(long: Run, points: int):
    assert long.trace is not None
    found = timeline(long.trace, points=points)

    assert np.array_equal(sum(found.categories.values()), found.allocated)
    assert np.all(np.diff(found.moments) > 0)
    assert found.moments[0] == 0
    assert found.moments[-1] == long.trace.moments - 1


def test_bands():
    found = timeline(training_story().trace())

    assert [(band.name, band.step) for band in found.phases[:3]] == [
        ("init", 1),
        ("forward", 1),
        ("backward", 1),
    ]
    assert [(band.name, band.step) for band in found.steps] == [("", 1), ("", 2)]
    for bands in (found.phases, found.steps):
        assert (bands[0].first, bands[-1].end) == (0, found.total_moments)
        assert [band.end for band in bands[:-1]] == [band.first for band in bands[1:]]
    assert (found.steps[0].first_us, found.steps[1].first_us) == (0, found.steps[1].first * 1000)


def test_spans_of_one_phase_are_one_band():
    story = Story().span("init", 1, mark="built").span("init", 1).span("forward", None)
    story.alloc(512)

    found = timeline(story.trace())

    assert [(band.name, band.step) for band in found.phases] == [("init", 1), ("forward", None)]
    assert [band.step for band in found.steps] == [1]


def test_marks():
    story = Story().span("init", mark="nothing yet").span("init", mark="model built")
    story.alloc(512)
    story.span("forward")
    story.alloc(512)

    assert [(mark.name, mark.moment) for mark in timeline(story.trace()).marks] == [
        ("nothing yet", -1),
        ("model built", 1),
    ]


def test_the_peak():
    found = timeline(training_story().trace())

    assert found.peak_moment == int(allocated_curve(training_story().trace()).argmax())
    assert (found.peak_phase, found.peak_step) == ("backward", 2)


def test_the_card():
    trace = training_story().trace()
    report = builders.trained()
    unlimited = replace(report, capacity_bytes=None)

    assert timeline(trace).for_the_allocator_bytes is None
    assert timeline(trace, report=report).for_the_allocator_bytes == 12_629_508_096 - report.outside.bytes
    assert timeline(trace, report=unlimited).capacity_bytes == report.card.memory_bytes


def test_without_a_clock():
    trace = training_story().trace()

    found = timeline(replace(trace, times_us=np.zeros_like(trace.times_us)))

    assert found.times_us is None
    assert {band.first_us for band in found.phases} == {None}


def test_no_events():
    found = timeline(Story().trace())

    assert (found.peak_moment, len(found.moments), found.categories) == (None, 0, {})
