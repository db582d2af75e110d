from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import builders
from traces import Story, training_story
from vramscope.analysis.grouping import grouped
from vramscope.analysis.peak import Share, peak
from vramscope.errors import UsageError
from vramscope.run.trace import Trace


def empty() -> Trace:
    return Story().trace()


def at_an_allocation() -> Trace:
    """Two layers' activations; the second one is the peak, the third block comes after a free."""
    story = Story().span("forward", 1)
    home = story.segment(1 << 20)
    first = story.alloc(4096, "activation", module="Net.a", line=7, segment=home)
    story.alloc(8192, "activation", module="Net.b", name="out", line=8, segment=home, requested=8000)
    story.span("backward", 1)
    story.free(first)
    story.alloc(512, "gradient", segment=home)
    return story.trace()


def test_the_peak():
    found = peak(at_an_allocation())

    assert found is not None
    assert (found.moment, found.phase, found.step, found.is_peak) == (2, "forward", 1, True)
    assert (found.module, found.line) == ("Net.b", "train.py:8 in main")
    assert (found.allocated_bytes, found.reserved_bytes, found.cached_bytes) == (
        12288,
        1 << 20,
        (1 << 20) - 12288,
    )
    assert found.categories == (Share("activation", 12288, 2),)
    assert found.modules == (Share("Net.b", 8192, 1), Share("Net.a", 4096, 1))
    assert [each.name for each in found.lines] == ["train.py:8 in main", "train.py:7 in main"]
    assert found.check() == ()


def test_the_largest_blocks():
    found = peak(at_an_allocation())

    assert found is not None
    first = found.largest[0]
    assert (first.size_bytes, first.requested_bytes, first.category) == (8192, 8000, "activation")
    assert (first.name, first.module, first.line) == ("out", "Net.b", "train.py:8 in main")
    assert (first.born, first.phase, first.step, first.count) == (2, "forward", 1, 1)


def test_equal_blocks_are_told_once():
    found = peak(training_story().trace())

    assert found is not None
    kinds = [(each.count, each.size_bytes, each.category, each.phase) for each in found.largest]
    assert (3, 16384, "activation", "forward") in kinds
    assert (6, 4096, "optimizer_state", "optimizer_step") in kinds
    assert sum(each.count for each in found.largest) == found.blocks


def test_another_moment():
    trace = at_an_allocation()

    found = peak(trace, 4)

    assert found is not None
    assert not found.is_peak
    assert {each.name: each.size_bytes for each in found.categories} == {"activation": 8192, "gradient": 512}
    assert found.modules[-1] == Share("", 512, 1)
    assert found.lines[-1].name == ""


def test_a_moment_without_an_allocation_belongs_to_no_module():
    found = peak(at_an_allocation(), 3)

    assert found is not None
    assert (found.module, found.line) == ("", None)


@pytest.mark.parametrize("moment", [-1, 5, 900])
def test_a_moment_that_is_not_there(moment: int):
    with pytest.raises(UsageError, match=f"there is no moment {moment}: the run has 0 to 4"):
        peak(at_an_allocation(), moment)


def test_nothing_has_no_peak():
    assert peak(empty()) is None


def test_a_snapshot_without_events_has_the_state_that_it_was_taken_in():
    full = at_an_allocation()
    blocks = replace(full.blocks, born=np.full(3, -1), freed=np.zeros(3, int), returned=np.zeros(3, int))
    segments = replace(full.segments, born=np.full(1, -1), freed=np.zeros(1, int))
    still = replace(
        full, moments=0, times_us=np.zeros(0, np.int64), spans=(), blocks=blocks, segments=segments
    )

    found = peak(still)

    assert found is not None
    assert (found.moment, found.phase, found.time_us) == (-1, None, None)
    assert (found.allocated_bytes, found.reserved_bytes) == (12800, 1 << 20)
    assert found.largest[0].born == -1
    assert found.check() == ()


def test_outside_is_the_spans_else_the_reports():
    trace = at_an_allocation()
    measured = replace(trace, spans=tuple(replace(span, outside_bytes=7 << 20) for span in trace.spans))
    report = builders.trained()

    def outside(trace: Trace, report: object) -> int | None:
        found = peak(trace, report=report)  # type: ignore[arg-type]
        assert found is not None
        assert (found.process_total_bytes is None) == (found.outside_bytes is None)
        return found.outside_bytes

    assert outside(trace, None) is None
    assert outside(trace, report) == report.outside.bytes
    assert outside(measured, report) == 7 << 20


def test_sums_that_do_not_close_are_told():
    found = peak(at_an_allocation())

    assert found is not None
    broken = replace(found, allocated_bytes=2 << 20)
    assert broken.check() == (
        "the categories sum to 12288, allocated is 2097152",
        "the modules sum to 12288, allocated is 2097152",
        "the lines sum to 12288, allocated is 2097152",
        "allocated 2097152 > reserved 1048576",
    )


LAYERS = (
    Share("Net.a.0", 600, 1),
    Share("Net.a.1", 300, 2),
    Share("Net.b", 50, 1),
    Share("", 40, 1),
    Share("Net.a", 10, 1),
)


@pytest.mark.parametrize(
    ("most", "rows"),
    [
        (2, {"Net": 960, "": 40}),
        (3, {"Net.a": 910, "Net.b": 50, "": 40}),
        (4, {"Net.a": 910, "Net.b": 50, "": 40}),
        (5, {"Net.a.0": 600, "Net.a.1": 300, "Net.b": 50, "": 40, "Net.a": 10}),
    ],
)
def test_modules_are_split_while_there_is_room(most: int, rows: dict[str, int]):
    found = grouped(LAYERS, most)

    assert {row.name: row.size_bytes for row in found} == rows
    assert sum(row.blocks for row in found) == 6
    assert [row.size_bytes for row in found] == sorted(rows.values(), reverse=True)


def test_nothing_to_group():
    assert grouped((), 5) == ()
