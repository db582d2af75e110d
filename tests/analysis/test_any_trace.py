"""Whatever a trace holds, its analyses agree with each other, and every view of it can be drawn."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import builders
from traces import Story
from vramscope.analysis.folding import fold
from vramscope.analysis.grouping import grouped
from vramscope.analysis.layers import layers
from vramscope.analysis.lines import lines
from vramscope.analysis.peak import peak
from vramscope.analysis.stages import stages
from vramscope.analysis.timeline import timeline
from vramscope.run.categories import CATEGORIES
from vramscope.run.curves import allocated_curve
from vramscope.run.trace import Trace
from vramscope.views.layers_text import layers_text
from vramscope.views.lines_text import lines_text
from vramscope.views.paragraphs import TextOptions
from vramscope.views.peak_text import peak_text
from vramscope.views.stages_text import stages_text
from vramscope.views.timeline_text import timeline_text

MODULES = ("", "Net", "Net.h.0", "Net.h.1", "Net.h.1.fc", "Net.h.2", "Other.a", "..")
PHASES = ("init", "forward", "backward", "optimizer_step", "zero_grad", "evaluation", "other")
EVENTS = st.one_of(
    st.tuples(
        st.just("alloc"),
        st.integers(1, 1 << 33),
        st.sampled_from(CATEGORIES),
        st.sampled_from(MODULES),
        st.sampled_from([None, 1, 2]),
    ),
    st.tuples(st.just("free"), st.integers(0, 50)),
    st.tuples(
        st.just("span"),
        st.sampled_from(PHASES),
        st.sampled_from([None, 1, 2, 3]),
        st.sampled_from([None, "m"]),
    ),
)


def traced(events: list[tuple[Any, ...]]) -> Trace:
    story = Story()
    live: list[int] = []
    for event in events:
        if event[0] == "alloc":
            _, size, category, module, line = event
            live.append(story.alloc(size, category, module=module, line=line))
        elif event[0] == "span":
            story.span(*event[1:])
        elif live:
            story.free(live.pop(event[1] % len(live)))
    return story.trace()


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=60))
def test_the_analyses_agree(events: list[tuple[Any, ...]]):
    trace = traced(events)
    tree, by_line, plot, found = layers(trace), lines(trace), timeline(trace, points=8), peak(trace)
    highest = int(allocated_curve(trace).max(initial=0))

    assert tree.check() == ()
    assert tree.allocated_bytes == by_line.allocated_bytes == highest
    assert sum(each.peak_bytes for each in by_line.rows) == highest
    assert int(plot.allocated.max(initial=0)) == highest
    assert (sum(plot.categories.values()) == plot.allocated).all() if plot.categories else True
    assert sum(each.total.peak_bytes for each in fold(tree.roots)) == highest - tree.elsewhere.peak_bytes
    assert (found is None) == (trace.moments == 0)
    if found is not None:
        assert found.check() == ()
        assert found.allocated_bytes == highest
        for most in (1, 3, 100):
            assert sum(each.size_bytes for each in grouped(found.modules, most)) == highest


@settings(max_examples=60, deadline=None)
@given(st.lists(EVENTS, max_size=60), st.sampled_from([30, 40, 80, 200]), st.booleans())
def test_every_view_can_be_drawn(events: list[tuple[Any, ...]], width: int, ascii_only: bool):
    trace, layout = traced(events), TextOptions(width, ascii_only)
    for report in (None, builders.trained(), builders.out_of_memory()):
        texts = [
            stages_text(stages(trace, report), layout),
            layers_text(layers(trace, report), layout),
            peak_text(peak(trace, report=report), layout),
            lines_text(lines(trace), layout),
            timeline_text(timeline(trace, report=report), layout),
        ]
        assert all(text.plain.startswith("  ") for text in texts)


@settings(max_examples=100, deadline=None)
@given(st.lists(EVENTS, max_size=60))
def test_the_changes_of_all_stages_sum_to_what_is_left(events: list[tuple[Any, ...]]):
    """By marks, every span belongs to one stage."""
    events = [("span", "init", 1, "begun"), *events]
    trace = traced(events)
    rows = [stage for stretch in stages(trace).stretches for stage in stretch.stages]

    assert sum(row.change_bytes for row in rows) == (allocated_curve(trace)[-1] if trace.moments else 0)
    assert sum(row.allocations for row in rows) == len(trace.blocks)
    assert max(row.peak_allocated_bytes for row in rows) == allocated_curve(trace).max(initial=0)
