"""A Run as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing.

The Trace Event Format: counters (ph "C") of what is allocated by category, all of it, and reserved, a process
per card; the phases and steps as slices (ph "X").  Times (`ts`, `dur`) are microseconds since the first event
of the run; a history without times has one microsecond per event.  Counters are bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from vramscope.analysis.lookup import has_clock
from vramscope.run.categories import CATEGORIES
from vramscope.run.curves import allocated_curve, category_curves, reserved_curve
from vramscope.run.run import Run
from vramscope.run.trace import Column, Span, Trace

Event = dict[str, Any]
_PHASES, _STEPS = 1, 2
"""The rows of a process that slices stand in: its threads, to Perfetto."""


def perfetto_json(run: Run) -> str:
    """The file's text, an event per line."""
    begins = [int(trace.times_us[0]) for trace in run.traces if has_clock(trace)]
    start = min(begins, default=0)
    head = {"name": run.name, "origin": run.origin, "start_us": start if begins else None}
    lines = ",\n".join(
        line for process, trace in enumerate(run.traces, start=1) for line in _lines(process, trace, start)
    )
    return f'{{"displayTimeUnit":"ms","otherData":{json.dumps(head)},"traceEvents":[\n{lines}\n]}}\n'


def _lines(process: int, trace: Trace, start: int) -> Iterator[str]:
    times = trace.times_us - start if has_clock(trace) else np.arange(trace.moments, dtype=np.int64)
    for event in (*_names(process, trace), *_slices(process, trace, times)):
        yield json.dumps(event, separators=(",", ":"))
    yield from _counter(process, "reserved", reserved_curve(trace), times)
    yield from _counter(process, "allocated", allocated_curve(trace), times)
    for category, curve in zip(CATEGORIES, category_curves(trace), strict=True):
        yield from _counter(process, f"allocated: {category}", curve, times)


def _names(process: int, trace: Trace) -> Iterator[Event]:
    yield _named("process_name", process, 0, f"cuda:{trace.device} of process {trace.pid}")
    yield _named("thread_name", process, _PHASES, "phases")
    yield _named("thread_name", process, _STEPS, "steps")


def _counter(process: int, name: str, curve: Column, times: Column) -> Iterator[str]:
    """The curve where it changes; of changes within one microsecond the highest, so that no peak is lost."""
    if not curve.any():
        return
    changes = np.flatnonzero(np.diff(curve, prepend=-1))
    at, first = np.unique(times[changes], return_index=True)
    highest = np.maximum.reduceat(curve[changes], first)
    last = curve[changes][np.append(first[1:], len(changes)) - 1]
    head = f'{{"ph":"C","pid":{process},"name":"{name}","ts":'
    for ts, high, value in zip(at.tolist(), highest.tolist(), last.tolist(), strict=True):
        yield f'{head}{ts},"args":{{"bytes":{high}}}}}'
        if value != high:
            yield f'{head}{ts + 1},"args":{{"bytes":{value}}}}}'


def _slices(process: int, trace: Trace, times: Column) -> Iterator[Event]:
    edges = _edges(trace.spans, times)
    spans = list(zip(trace.spans, edges[:-1], edges[1:], strict=True))
    for span, begin, end in spans:
        told = {"step": span.step, "mark": span.mark, "first event": span.first}
        args = {key: value for key, value in told.items() if value is not None}
        yield _slice(process, _PHASES, span.phase, begin, end, args)
    for step, group in groupby(spans, key=lambda each: each[0].step):
        within = list(group)
        if step is not None:
            yield _slice(process, _STEPS, f"step {step}", within[0][1], within[-1][2], {})


def _edges(spans: Sequence[Span], times: Column) -> list[int]:
    """When each span begins, by its first event, and when the last one ends."""
    if not len(times):
        return [0] * (len(spans) + 1)
    last = len(times) - 1
    return [int(times[min(span.first, last)]) for span in spans] + [int(times[last])]


def _slice(process: int, row: int, name: str, begin: int, end: int, args: dict[str, Any]) -> Event:
    return {
        "ph": "X",
        "pid": process,
        "tid": row,
        "name": name,
        "ts": begin,
        "dur": end - begin,
        "args": args,
    }


def _named(what: str, process: int, row: int, name: str) -> Event:
    return {"ph": "M", "pid": process, "tid": row, "name": what, "args": {"name": name}}
