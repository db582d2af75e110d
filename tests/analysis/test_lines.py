from __future__ import annotations

from traces import Story, training_story
from vramscope.analysis.lines import lines


def story() -> Story:
    """Line 7 keeps one block and drops a larger one, line 8 asks last; one block has no line."""
    made = Story().span("forward", 1)
    dropped = made.alloc(8192, "temporary", line=7)
    made.free(dropped)
    made.alloc(1024, "activation", line=7)
    made.alloc(4096, "gradient", line=8)
    made.alloc(512)
    made.alloc(4096, "gradient", line=8)
    return made


def test_lines():
    found = lines(story().trace())

    assert [each.where for each in found.rows] == ["train.py:8 in main", "train.py:7 in main", None]
    eight, seven, none = found.rows
    assert (seven.peak_bytes, seven.total_bytes, seven.count, seven.largest_bytes) == (1024, 9216, 2, 8192)
    assert (eight.peak_bytes, eight.count, eight.user) == (8192, 2, True)
    assert seven.peak_categories == (("activation", 1024),)
    assert seven.categories == (("temporary", 8192), ("activation", 1024))
    assert (none.peak_bytes, none.user, none.text) == (512, False, "")


def test_their_sums_close():
    found = lines(training_story().trace())

    assert sum(each.peak_bytes for each in found.rows) == found.allocated_bytes
    assert sum(each.total_bytes for each in found.rows) == found.total_bytes
    assert all(sum(size for _, size in each.categories) == each.total_bytes for each in found.rows)


def test_lines_without_memory_at_the_peak_come_by_what_they_asked_for():
    made = Story()
    for line, size in ((1, 512), (2, 1024), (3, 4096)):
        made.free(made.alloc(size, line=line))

    assert [each.where and each.where[9] for each in lines(made.trace()).rows] == ["3", "2", "1"]


def test_nothing_was_allocated():
    found = lines(Story().trace())

    assert (found.moment, found.rows, found.total_bytes) == (-1, (), 0)
