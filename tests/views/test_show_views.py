"""The views of `vramscope show`, line by line, at three widths and in ASCII."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from goldens import assert_golden
from rich.cells import cell_len
from rich.text import Text

import builders
from million import million_run
from traces import Story, training_story
from vramscope.analysis.layers import layers
from vramscope.analysis.lines import lines
from vramscope.analysis.peak import peak
from vramscope.analysis.stages import stages
from vramscope.analysis.summary import summary
from vramscope.analysis.timeline import timeline
from vramscope.run.report import Report
from vramscope.run.run import Run
from vramscope.run.trace import Module, Tables, Trace
from vramscope.views.layers_text import layers_text
from vramscope.views.lines_text import lines_text
from vramscope.views.paragraphs import TextOptions
from vramscope.views.peak_text import peak_text
from vramscope.views.stages_text import stages_text
from vramscope.views.summary_text import summary_text
from vramscope.views.timeline_text import timeline_text

WIDTHS = (40, 80, 120)
View = Callable[[Run, Trace, TextOptions], Text]
VIEWS: dict[str, View] = {
    "summary": lambda run, trace, layout: summary_text(summary(run, trace), run.report, layout),
    "stages": lambda run, trace, layout: stages_text(stages(trace, run.report), layout),
    "layers": lambda run, trace, layout: layers_text(layers(trace, run.report), layout),
    "peak": lambda run, trace, layout: peak_text(peak(trace, report=run.report), layout),
    "lines": lambda run, trace, layout: lines_text(lines(trace), layout),
    "timeline": lambda run, trace, layout: timeline_text(timeline(trace, report=run.report), layout),
}


def shown(name: str, run: Run, layout: TextOptions) -> str:
    assert run.trace is not None
    return VIEWS[name](run, run.trace, layout).plain.rstrip("\n") + "\n"


def predicted(trace: Trace, report: Report) -> Run:
    return Run(report, traces=(trace,), origin="predicted", name="train.py")


def without_events() -> Run:
    return predicted(Story().trace(), builders.trained())


def out_of_memory() -> Run:
    """Its second step finds no room on a card that the plot has a line for."""
    story = training_story().span("forward", 3)
    story.alloc(1 << 20, "activation", module="Net.a", line=10)
    report = replace(builders.out_of_memory(), capacity_bytes=171 * builders.MIB + builders.MIB // 2)
    return predicted(story.trace(), report)


def a_snapshot() -> Run:
    """Without modules, names, categories, phases and a clock, begun late."""
    full = training_story().trace()
    blocks = replace(
        full.blocks,
        category=np.full_like(full.blocks.category, 11),
        module=np.zeros_like(full.blocks.module),
        name=np.zeros_like(full.blocks.name),
        born=np.where(full.blocks.born < 6, -1, full.blocks.born),
    )
    spans = (replace(full.spans[0], phase="other", step=None, stack=0, time_us=None),)
    tables = Tables(frames=full.tables.frames, stacks=full.tables.stacks)
    trace = replace(
        full,
        blocks=blocks,
        spans=spans,
        tables=tables,
        whole=False,
        times_us=np.zeros_like(full.times_us),
        notes=("torch kept the last 90 events only",),
    )
    return Run(None, traces=(trace,), origin="imported", name="oom.pickle")


def without_stacks() -> Run:
    run = a_snapshot()
    trace = run.traces[0]
    blocks = replace(trace.blocks, stack=np.zeros_like(trace.blocks.stack))
    return replace(run, traces=(replace(trace, blocks=blocks),))


def of_segments_alone() -> Run:
    """A snapshot that was taken without a history."""
    trace = a_snapshot().traces[0]
    count, pieces = len(trace.blocks), len(trace.segments)
    still = replace(
        trace,
        moments=0,
        times_us=np.zeros(0, np.int64),
        spans=(),
        blocks=replace(
            trace.blocks,
            born=np.full(count, -1),
            freed=np.zeros(count, np.int64),
            returned=np.zeros(count, np.int64),
        ),
        segments=replace(trace.segments, born=np.full(pieces, -1), freed=np.zeros(pieces, np.int64)),
    )
    return Run(None, traces=(still,), origin="imported", name="segments.pickle")


def marked() -> Run:
    story = Story().span("init", 1, mark="model built").span("init", 1)
    story.alloc(3 << 30, "parameter", module="Net", line=3)
    story.span("init", 1, mark="a mark of a name that is far longer than any line has room for").span(
        "forward", 1
    )
    story.free(story.alloc(1 << 30, "temporary", line=4))
    return replace(story.run(), origin="measured")


RUNS = {
    "training": lambda: predicted(training_story().trace(), builders.trained()),
    "imported": lambda: training_story().run(),
    "out_of_memory": out_of_memory,
    "without_events": without_events,
    "snapshot": a_snapshot,
    "without_stacks": without_stacks,
    "segments": of_segments_alone,
    "marked": marked,
    "long": lambda: million_run(10_000),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("view", VIEWS)
def test_golden(view: str, width: int):
    compare(shown(view, RUNS["training"](), TextOptions(width)), f"show_{view}_{width}")


@pytest.mark.parametrize("view", VIEWS)
def test_golden_in_ascii(view: str):
    compare(shown(view, RUNS["training"](), TextOptions(80, ascii_only=True)), f"show_{view}_80_ascii")


@pytest.mark.parametrize("view", ["stages", "layers", "peak", "timeline"])
def test_golden_of_a_longer_run(view: str):
    compare(shown(view, RUNS["long"](), TextOptions(100)), f"show_{view}_long_100")


@pytest.mark.parametrize(
    ("view", "run"),
    [
        ("summary", "snapshot"),
        ("peak", "snapshot"),
        ("stages", "marked"),
        ("timeline", "marked"),
        ("timeline", "out_of_memory"),
        ("stages", "out_of_memory"),
    ],
)
def test_golden_of_another_run(view: str, run: str):
    compare(shown(view, RUNS[run](), TextOptions(80)), f"show_{view}_{run}_80")


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_of_every_run_fits_the_terminal(view: str, run: str):
    found = RUNS[run]()
    for width in (*WIDTHS, 61, 200):
        for ascii_only in (False, True):
            text = shown(view, found, TextOptions(width, ascii_only))
            lines = [line for line in text.splitlines() if line]
            assert lines
            assert all(line.startswith("  ") and line == line.rstrip() for line in lines)
            assert max(map(cell_len, lines)) <= width
            assert text.isascii() or not ascii_only


@pytest.mark.parametrize(
    ("view", "sentence"),
    [
        ("stages", "no stages were recorded"),
        ("peak", "nothing was allocated"),
        ("lines", "nothing was allocated"),
        ("timeline", "no events were recorded, so there is nothing to plot"),
        ("layers", "no modules are known"),
    ],
)
def test_what_is_not_there_is_said(view: str, sentence: str):
    assert sentence in shown(view, RUNS["without_events"](), TextOptions(80))


def test_a_snapshot_names_no_modules():
    text = shown("layers", a_snapshot(), TextOptions(200))

    assert "a snapshot of torch's names none" in text
    assert "--lines tells them by source line" in text


def test_without_stacks_there_are_no_lines():
    text = shown("lines", without_stacks(), TextOptions(80))

    assert text == "  no source lines are known: the run was recorded without Python stacks\n"


def test_the_state_of_a_snapshot_without_events():
    text = shown("peak", of_segments_alone(), TextOptions(80))

    assert "before the history began" in text


def test_outside_is_left_out_where_it_is_not_known():
    assert "process total" in shown("peak", RUNS["training"](), TextOptions(80))
    assert "process total" not in shown("peak", RUNS["imported"](), TextOptions(80))


def test_another_moment_is_no_peak():
    found = peak_text(peak(training_story().trace(), 20), TextOptions(80)).plain

    assert found.startswith("  at moment 20 allocated ")


def test_a_virtual_cards_clock_says_nothing():
    found = stages(training_story().trace())

    assert "10.0 ms" in stages_text(found, TextOptions(120)).plain
    assert " ms" not in stages_text(found, TextOptions(120), clock=False).plain


def test_many_stages_are_shortened():
    story = Story()
    for number in range(1000):
        story.span("other", mark=f"epoch {number}")
        story.alloc(512)
    shortened = stages_text(stages(story.trace()), TextOptions(80)).plain

    assert "epoch 19 " in shortened and "epoch 980 " in shortened
    assert "epoch 20 " not in shortened
    assert "… 960 more (--json has all)" in shortened


def test_depth():
    found = layers(million_run(10_000).traces[0])

    heads = [layers_text(found, TextOptions(80), depth).plain for depth in (0, 1, 2)]

    assert "layer1" not in heads[0]
    assert "    layer1 " in heads[1] and "layer1.0 " not in heads[1]
    assert "      layer1.0 " in heads[2]


def deep(*children: str) -> Trace:
    """A model whose layers are built alike."""
    story = Story().span("forward", 1)
    story.module("Net", "Net")
    for name in children:
        story.module(f"Net.h.{name}", "Block", parameters=5, trainable=5)
        story.alloc(4096, "activation", module=f"Net.h.{name}.fc")
    return story.trace()


def test_a_list_of_equal_layers_is_one_row():
    text = layers_text(layers(deep(*map(str, range(12)))), TextOptions(80)).plain

    assert "    h.0–11 × 12  " in text
    assert "      fc  " in text
    assert "\n    h  " not in text


def test_a_layers_own_has_a_row_beside_those_below_it():
    story = Story().span("forward", 1)
    story.alloc(8192, "activation", module="Net")
    story.alloc(4096, "activation", module="Net.fc")

    assert "    (itself)  " in layers_text(layers(story.trace()), TextOptions(80)).plain


def test_a_layer_that_holds_next_to_nothing_has_no_row():
    story = Story().span("forward", 1)
    story.alloc(4 << 20, "activation", module="Net.fc")
    story.alloc(512, "activation", module="Net.act")
    story.module("Net.norm", parameters=1)

    text = layers_text(layers(story.trace()), TextOptions(80)).plain

    assert "    act " not in text
    assert "    fc " in text and "    norm " in text


@pytest.mark.parametrize(
    ("trainable", "words"), [(10, "all trainable"), (4, "4 trainable"), (0, "0 trainable")]
)
def test_what_trains(trainable: int, words: str):
    trace = training_story().trace()
    modules = (*trace.tables.modules[:1], Module("Net.a", "Linear", 10, 40, trainable, 4 * trainable))
    modules += trace.tables.modules[2:]
    found = layers(replace(trace, tables=replace(trace.tables, modules=modules)))

    text = layers_text(found, TextOptions(120)).plain

    assert f"10 parameters, {words}" in text
    assert ("frozen" in text) == (trainable < 10)
    assert ("partly frozen" in text) == (trainable == 4)


def test_what_a_program_names_cannot_paint_the_terminal():
    story = Story().span("forward", 1, mark="\x1b[31mred\n")
    story.alloc(512, "activation", module="\x1b[31mNet", name="a\nb", line=3)
    run = story.run()

    for view in VIEWS:
        text = shown(view, run, TextOptions(120))
        assert "\x1b" not in text
    assert " [31mred" in shown("stages", run, TextOptions(120))


def test_categories_have_their_colours():
    styles = {str(part.style) for part in peak_text(peak(training_story().trace()), TextOptions(120)).spans}

    assert {"cyan", "green", "bold"} <= styles


def test_the_end_of_the_card_is_drawn_where_it_is_near():
    near, far = (
        timeline_text(timeline(run.traces[0], report=run.report), TextOptions(200)).plain
        for run in (out_of_memory(), RUNS["training"]())
    )

    assert "─ the card's end" in near
    assert "the card's end" not in far
    assert "the card leaves it" in near and "the card leaves it" in far


def test_other_processes_are_named():
    first = training_story().trace()
    run = Run(builders.trained(), traces=tuple(replace(first, pid=pid) for pid in range(1, 8)))

    text = " ".join(shown("summary", run, TextOptions(200)).split())

    assert "process 1 on cuda:0; also recorded: process 2 on cuda:0 (98.5 KiB), process 3" in text
    assert "and 2 more (--device N, --process PID)" in text


def compare(text: str, name: str) -> None:
    assert_golden(name, text)
