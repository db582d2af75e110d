"""What the page's script is given: the columns come back as they were, and only what is used is carried."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_runs import KINDS, imported, large, trained_run

from traces import Story
from vramscope.run.categories import CATEGORIES
from vramscope.run.trace import Trace
from vramscope.views.page.data import trace_text
from vramscope.views.page.pack import packed, unpacked

INT32 = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(st.integers(-1, 2**30)), st.lists(st.integers(0, 2**53)), st.text())
def test_packed_comes_back(numbers: list[int], sizes: list[int], text: str):
    columns = {"numbers": np.array(numbers, np.int64), "sizes": np.array(sizes, np.float64)}

    header, found = unpacked(packed({"text": text}, columns))

    assert header == {"text": text}
    assert found["numbers"].tolist() == numbers
    assert found["sizes"].tolist() == sizes


def test_a_text_holds_nothing_but_base64():
    assert trace_text(trained_run().traces[0]).replace("+", "").replace("/", "").rstrip("=").isalnum()


@pytest.mark.parametrize("trace", [trained_run().traces[0], imported().traces[0], large(3000).traces[0]])
def test_every_block_comes_back(trace: Trace):
    header, columns = unpacked(trace_text(trace))
    kind = columns["kind"]

    blocks, tables = trace.blocks, trace.tables
    assert np.array_equal(columns["born"], blocks.born)
    assert np.array_equal(columns["born"] + columns["lived"], blocks.freed)
    assert np.array_equal(columns["size"][kind], blocks.size_bytes)
    assert np.array_equal(columns["category"][kind], blocks.category)
    found = [header["modules"][number] for number in columns["module"][kind]]
    assert found == [tables.modules[number].path for number in blocks.module]
    assert [header["names"][n] for n in columns["name"][kind]] == [tables.names[n] for n in blocks.name]


def test_steps_that_repeat_share_their_kinds():
    trace = large(20_000).traces[0]

    _, columns = unpacked(trace_text(trace))

    assert len(columns["size"]) < len(trace.blocks) / 5


def test_only_used_tables_are_carried():
    story = Story()
    story.module("Net.unused")
    story.stack(("unused.py", 1, "main", True))
    story.alloc(512, "activation", module="Net.used", line=7)

    header, _ = unpacked(trace_text(story.trace()))

    assert header["modules"] == ["", "Net.used"]
    assert header["lines"] == [["", ""], ["train.py:7 in main", ""]]
    assert header["frames"] == [["train.py:7 in main", 1, ""]]


def test_outside_is_of_the_span_where_it_tells():
    from dataclasses import replace

    trace = trained_run().traces[0]
    spans = (replace(trace.spans[0], outside_bytes=7), *trace.spans[1:])

    header, _ = unpacked(trace_text(replace(trace, spans=spans), 9))

    assert [span[5] for span in header["spans"]][:2] == [7, 9]


def test_every_category_has_a_number_that_the_page_knows():
    run = KINDS["trained"]()
    _, columns = unpacked(trace_text(run.traces[0]))

    assert columns["category"].max() < len(CATEGORIES)
