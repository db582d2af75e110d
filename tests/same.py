"""Whether two runs are the same, column by column: arrays have no `==` that says so."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from vramscope.run.run import Run
from vramscope.run.trace import Trace, no_blocks, no_segments

_NOTHING = np.empty(0, np.int64)


def assert_same(found: Run, expected: Run) -> None:
    assert replace(found, traces=()) == replace(expected, traces=())
    assert len(found.traces) == len(expected.traces)
    for one, other in zip(found.traces, expected.traces, strict=True):
        assert _without_columns(one) == _without_columns(other)
        for name, column in _columns(one).items():
            assert column.dtype == _columns(other)[name].dtype, name
            assert np.array_equal(column, _columns(other)[name]), name


def _without_columns(trace: Trace) -> dict[str, object]:
    bare = replace(trace, times_us=_NOTHING, blocks=no_blocks(), segments=no_segments())
    hidden = {"times_us", "blocks", "segments"}
    return {each.name: getattr(bare, each.name) for each in fields(bare) if each.name not in hidden}


def _columns(trace: Trace) -> dict[str, np.ndarray]:
    found = {"times_us": trace.times_us}
    for table in (trace.blocks, trace.segments):
        found |= {f"{type(table).__name__} {each.name}": getattr(table, each.name) for each in fields(table)}
    return found
