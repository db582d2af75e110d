"""Runs that are sound and otherwise anything: sums need not close, and nothing need make sense."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from builders import REPORTS
from vramscope.run.categories import CATEGORIES
from vramscope.run.journal import journal_of
from vramscope.run.run import IMPORTED, MEASURED, PREDICTED, Run
from vramscope.run.trace import (
    BLOCK_TYPES,
    SEGMENT_TYPES,
    Blocks,
    Frame,
    Module,
    Optimizer,
    Segments,
    Span,
    Tables,
    Trace,
)

SIZES = st.sampled_from([0, 1, 512, 4096, 1 << 20, 1 << 21, 3 << 30, 1 << 40])
COUNTS = st.sampled_from([0, 1, 1000, 1 << 40])
WORDS = st.sampled_from(
    [
        "",
        "a",
        "Net.a.0",
        "Net.a.1",
        "Net.b",
        ".",
        "a..b",
        "0",
        "lora_A",
        "\x1b[31m\n",
        "[bold]",
        "é" * 90,
    ]
) | st.text(max_size=8)
PHASES = st.sampled_from(
    ["init", "forward", "backward", "optimizer_step", "zero_grad", "evaluation", "other", "", "x"]
)
MAYBE = st.none()


@st.composite
def runs(draw: st.DrawFn) -> Run:
    report = draw(MAYBE | st.sampled_from(sorted(REPORTS)))
    traces = tuple(draw(traces_of(device)) for device in range(draw(st.integers(0, 2))))
    origin = draw(st.sampled_from([PREDICTED, MEASURED, IMPORTED]))
    journal = journal_of([{"pid": 1, "kind": "mark", "text": "a"}])
    return Run(REPORTS[report]() if report else None, journal, traces, origin, draw(WORDS))


@st.composite
def traces_of(draw: st.DrawFn, device: int = 0) -> Trace:
    moments = draw(st.integers(0, 12))
    tables = draw(TABLES)
    segments = _segments(draw, moments)
    count = len(segments["born"])
    blocks = (
        _blocks(draw, moments, count, tables)
        if count
        else _typed(BLOCK_TYPES, {name: [] for name in BLOCK_TYPES})
    )
    begins = draw(st.sampled_from([0, 1_790_000_000_000_000]))
    times = np.cumsum([begins, *draw(_columns(st.sampled_from([0, 1, 5000]), moments))])[1:]
    return Trace(
        pid=draw(st.integers(0, 3)),
        device=device,
        moments=moments,
        times_us=times.astype(np.int64),
        blocks=Blocks(**blocks),
        segments=Segments(**segments),
        spans=_spans(draw, moments, len(tables.stacks)),
        tables=tables,
        streams=(0, 7),
        pools=((0, 0), (1, 2)),
        settings=draw(st.dictionaries(WORDS, st.none() | st.booleans() | COUNTS | WORDS, max_size=2)),
        whole=draw(st.booleans()),
        notes=tuple(draw(st.lists(WORDS, max_size=2))),
    )


FRAMES = st.builds(Frame, WORDS, COUNTS, WORDS, st.booleans(), WORDS)
MODULES = st.builds(Module, WORDS, WORDS, *[COUNTS] * 5, st.lists(WORDS, max_size=1).map(tuple))
OPTIMIZERS = st.builds(
    Optimizer, WORDS | st.just("AdamW"), COUNTS, st.none() | st.booleans(), st.none() | st.booleans()
)


@st.composite
def _tables(draw: st.DrawFn) -> Tables:
    frames = tuple(draw(st.lists(FRAMES, max_size=3)))
    stack = st.lists(st.integers(0, len(frames) - 1), max_size=3).map(tuple) if frames else st.just(())
    return Tables(
        modules=(Module(""), *draw(st.lists(MODULES, max_size=4))),
        names=("", *draw(st.lists(WORDS, max_size=2))),
        frames=frames,
        stacks=((), *draw(st.lists(stack, max_size=3))),
        optimizers=tuple(draw(st.lists(OPTIMIZERS, max_size=2))),
    )


TABLES = _tables()


def _columns(values: st.SearchStrategy[Any], rows: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=rows, max_size=rows)


def _segments(draw: st.DrawFn, moments: int) -> dict[str, np.ndarray]:
    rows = draw(st.integers(0, 4))
    born, freed, _ = _lives(draw, moments, rows)
    columns = {name: draw(_columns(st.integers(0, 1), rows)) for name in SEGMENT_TYPES}
    columns |= {"size_bytes": draw(_columns(SIZES, rows)), "born": born, "freed": freed}
    return _typed(SEGMENT_TYPES, columns)


def _blocks(draw: st.DrawFn, moments: int, segments: int, tables: Tables) -> dict[str, np.ndarray]:
    rows = draw(st.integers(0, 8))
    born, freed, returned = _lives(draw, moments, rows)
    most = {
        "stream": 2,
        "segment": segments,
        "category": len(CATEGORIES),
        "module": len(tables.modules),
        "name": len(tables.names),
        "stack": len(tables.stacks),
        "flags": 32,
        "address": 9,
    }
    columns = {name: draw(_columns(st.integers(0, length - 1), rows)) for name, length in most.items()}
    columns |= {"size_bytes": draw(_columns(SIZES, rows)), "requested_bytes": draw(_columns(SIZES, rows))}
    return _typed(BLOCK_TYPES, {**columns, "born": born, "freed": freed, "returned": returned})


def _lives(draw: st.DrawFn, moments: int, rows: int) -> tuple[list[int], list[int], list[int]]:
    born = sorted(draw(_columns(st.integers(-1, moments - 1), rows)))
    freed = [draw(st.integers(max(each, 0), moments)) for each in born]
    return born, freed, [draw(st.integers(each, moments)) for each in freed]


def _spans(draw: st.DrawFn, moments: int, stacks: int) -> tuple[Span, ...]:
    firsts = [0, *sorted(draw(st.lists(st.integers(0, moments), max_size=5)))]
    return tuple(
        Span(
            first,
            draw(PHASES),
            draw(MAYBE | st.integers(0, 3)),
            draw(MAYBE | WORDS),
            draw(st.integers(0, stacks - 1)),
            draw(MAYBE | st.just(1_790_000_000_000_000)),
            *(draw(MAYBE | SIZES) for _ in range(5)),
        )
        for first in firsts
    )


def _typed(kinds: dict[str, str], columns: dict[str, list[int]]) -> dict[str, np.ndarray]:
    return {name: np.array(columns[name], kind) for name, kind in kinds.items()}
