"""The runs that the page is tested with, one of each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from builders import out_of_memory, trained, troubled
from million import million_run
from traces import Story, training_story
from vramscope.run.report import Assumed
from vramscope.run.run import IMPORTED, Run
from vramscope.run.trace import Frame, Trace

HOSTILE = "</script><img src=x onerror=globalThis.hacked=1>\udcff"
"""A name that would run if it ever became markup; its last byte is no UTF-8."""


def trained_run() -> Run:
    """Two steps and their report."""
    return replace(
        training_story().run(), report=trained(), origin="predicted", name="train.py --batch-size 90"
    )


def marked() -> Run:
    """A run whose program made marks."""
    story = Story().span("init", mark="model built")
    kept = story.alloc(4096, "parameter", module="Net.a")
    story.span("other", mark="data loaded")
    story.alloc(1536, "input")
    story.free(kept)
    return story.run()


def stopped_short() -> Run:
    """One that ran out of memory in its second step."""
    return replace(training_story().run(), report=out_of_memory(), origin="predicted")


def imported() -> Run:
    """A snapshot with a history: no modules, no report, some blocks from before it."""
    story = Story().span("other")
    for line in range(1, 9):
        story.alloc(1024 * line, "unknown", line=line)
    story.free(3)
    trace = story.trace()
    born = np.where(np.arange(len(trace.blocks)) < 2, -1, trace.blocks.born)
    blocks = replace(trace.blocks, born=born)
    segments = replace(
        trace.segments, born=np.where(np.arange(len(trace.segments)) < 2, -1, trace.segments.born)
    )
    trace = replace(
        trace, blocks=blocks, segments=segments, whole=False, notes=("what was freed before it is not known",)
    )
    return Run(None, traces=(trace,), origin=IMPORTED, name="snapshot.pickle")


def without_history() -> Run:
    """A snapshot without a history: the state that it was taken in."""
    trace = imported().traces[0]
    here = np.flatnonzero(trace.blocks.freed == trace.moments)
    blocks = replace(
        trace.blocks, **{name: getattr(trace.blocks, name)[here] for name in trace.blocks.__slots__}
    )
    still = np.zeros(len(here), np.int64)
    blocks = replace(blocks, born=still - 1, freed=still, returned=still)
    pieces = np.zeros(len(trace.segments), np.int64)
    segments = replace(trace.segments, born=pieces - 1, freed=pieces)
    trace = replace(trace, moments=0, times_us=trace.times_us[:0], blocks=blocks, segments=segments)
    return Run(None, traces=(trace,), origin=IMPORTED, name="state.pickle")


def on_two_cards() -> Run:
    """Two processes, each on a card of its own."""
    other = replace(marked().traces[0], pid=2, device=1)
    return replace(trained_run(), traces=(training_story().trace(), other))


def hostile() -> Run:
    """Every text that a program chooses would be markup."""
    story = Story().span("forward", 1, mark=HOSTILE)
    story.alloc(4096, "activation", module=f"Net.{HOSTILE}", name=HOSTILE, line=3)
    story.frames = [Frame(HOSTILE, each.line, HOSTILE, True, HOSTILE) for each in story.frames]
    report = replace(troubled(), program=(HOSTILE,), card=replace(troubled().card, name=HOSTILE))
    trace = replace(story.trace(), notes=(HOSTILE,))
    return Run(report, traces=(trace,), name=HOSTILE)


def large(events: int = 100_000) -> Run:
    """Many steps of a ResNet's shape, with a report."""
    return replace(million_run(events), report=trained(), name="train.py")


def uneven(run: Run) -> Run:
    """The same events, but no two blocks are alike: what is hardest to keep small."""
    trace, draw = run.traces[0], np.random.default_rng(0)
    blocks, count = trace.blocks, len(trace.blocks)
    size = draw.integers(1, 1 << 22, count) * 512
    module = draw.integers(0, len(trace.tables.modules), count).astype(np.int32)
    stack = draw.integers(0, len(trace.tables.stacks), count).astype(np.int32)
    freed = np.where(
        blocks.freed < trace.moments,
        np.minimum(blocks.freed + draw.integers(0, 4000, count), trace.moments),
        blocks.freed,
    )
    changed = replace(
        blocks, size_bytes=size, requested_bytes=size, module=module, stack=stack, freed=freed, returned=freed
    )
    return replace(run, traces=(replace(trace, blocks=changed),))


def empty_trace() -> Trace:
    return Story().trace()


def with_long_words() -> Run:
    """Texts that no line can be broken in."""
    word = "PYTORCH_CUDA_ALLOC_CONF=" + "expandable_segments:True," * 9
    story = Story().span("forward", 1, mark=word)
    story.alloc(4096, "activation", module="Net." + "deep." * 40 + "est", name=word, line=3)
    trace = replace(story.trace(), notes=(word,))
    report = replace(
        troubled(), program=("/".join(["folder"] * 40),), assumed=(Assumed(word, word, 1, word),)
    )
    return Run(report, traces=(trace,), name="")


KINDS: dict[str, Callable[[], Run]] = {
    "trained": trained_run,
    "marked": marked,
    "out of memory": stopped_short,
    "imported": imported,
    "without a history": without_history,
    "two cards": on_two_cards,
    "troubled": lambda: replace(training_story().run(), report=troubled()),
    "report only": lambda: Run(trained()),
    "nothing": lambda: Run(None),
    "no event": lambda: Run(None, traces=(empty_trace(),)),
    "hostile": hostile,
    "long words": with_long_words,
}
