"""What the analyses look up: the phase of a moment, the line of a stack, the module of a block."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import numpy as np

from vramscope.errors import UsageError
from vramscope.run.report import Report
from vramscope.run.run import Run
from vramscope.run.trace import Blocks, Column, Frame, Segments, Span, Tables, Trace

BEFORE = -1
"""The moment before the first event: what was there already."""


def chosen_trace(run: Run, device: int | None = None, process: int | None = None) -> Trace | None:
    """The trace of a card and process, the highest one where several match; None if nothing was recorded.

    UsageError where there are traces, but none of that card or process."""
    matching = [
        trace for trace in run.traces if device in (None, trace.device) and process in (None, trace.pid)
    ]
    if matching or not run.traces:
        return matching[0] if matching else None
    there = ", ".join(f"process {trace.pid} on cuda:{trace.device}" for trace in run.traces)
    asked = " and ".join(_asked(device, process))
    raise UsageError(f"the run has nothing of {asked}; it has {there}")


def levels(table: Blocks | Segments, curve: Column) -> Column:
    """int64[moments + 1], the curve with what was there before its first moment in front of it."""
    before = table.size_bytes[table.born < 0].sum()
    return np.concatenate([np.array([before], np.int64), curve])


def has_clock(trace: Trace) -> bool:
    """Whether the moments have times; a snapshot of an early torch has none."""
    return bool(trace.moments) and int(trace.times_us[0]) != int(trace.times_us[-1])


def span_ends(trace: Trace) -> list[int]:
    """For each span the moment after its last."""
    return [span.first for span in trace.spans[1:]] + [trace.moments] * bool(trace.spans)


def span_numbers(trace: Trace, moments: Column) -> Column:
    """For each moment the number of the span that it lies in; -1 before the first event."""
    firsts = np.array([span.first for span in trace.spans], np.int64)
    found = np.maximum(np.searchsorted(firsts, moments, side="right") - 1, 0)
    return np.where((moments < 0) | (not trace.spans), BEFORE, found)


def span_of(trace: Trace, moment: int) -> Span | None:
    """The span that a moment lies in; None before the first event."""
    number = int(span_numbers(trace, np.array([moment]))[0])
    return None if number < 0 else trace.spans[number]


def phase_of(trace: Trace, moment: int) -> tuple[str | None, int | None]:
    """The phase and the step of a moment; None where it is not known."""
    span = span_of(trace, moment)
    return (None, None) if span is None else (span.phase, span.step)


def complete_steps(trace: Trace, report: Report | None = None) -> tuple[int, ...]:
    """The steps in which an optimizer stepped, without those that the report knows to be cut off."""
    cut = {step.step for step in report.steps if not step.complete} if report else set()
    stepped = {span.step for span in trace.spans if span.phase == "optimizer_step" and span.step is not None}
    return tuple(sorted(stepped - cut))


def steps_moments(trace: Trace, step: int) -> tuple[int, int]:
    """The first moment of a step and the one after its last."""
    numbers = [number for number, span in enumerate(trace.spans) if span.step == step]
    return trace.spans[numbers[0]].first, span_ends(trace)[numbers[-1]]


def steady_moments(trace: Trace, report: Report | None = None) -> tuple[int, int]:
    """The moments of the last complete step; of the whole trace where there is none."""
    whole = complete_steps(trace, report)
    first, end = steps_moments(trace, whole[-1]) if whole else (0, trace.moments)
    return (first, end) if end > first else (0, trace.moments)


def line_of(tables: Tables, stack: int) -> str | None:
    """``train.py:41 in main``: the user's innermost line, else the innermost outside torch; None if there is none."""
    frame = frame_of(tables, stack)
    return None if frame is None else place(frame)


def frame_of(tables: Tables, stack: int) -> Frame | None:
    """The frame of `line_of`."""
    if not 0 <= stack < len(tables.stacks):
        return None
    frames = [tables.frames[number] for number in tables.stacks[stack]]
    outside = (frame for frame in frames if not is_torch(frame))
    return next((frame for frame in frames if frame.user), None) or next(outside, None)


def lines_of(tables: Tables) -> tuple[list[Frame | None], Column]:
    """The distinct lines of all stacks, None first, and for each stack the number of its line."""
    numbers: dict[Frame | None, int] = {None: 0}
    found = [numbers.setdefault(frame_of(tables, n), len(numbers)) for n in range(len(tables.stacks))]
    return list(numbers), np.array(found, np.int64)


def place(frame: Frame) -> str:
    """``train.py:41 in main``."""
    return (
        f"{frame.file}:{frame.line} in {frame.function}" if frame.function else f"{frame.file}:{frame.line}"
    )


def is_torch(frame: Frame) -> bool:
    """Whether a line is of torch itself, or not of Python."""
    path = PurePosixPath(frame.file.replace("\\", "/"))
    is_python = path.suffix == ".py" or frame.file.startswith("<")  # "<stdin>", a cell of a notebook
    return not is_python or "torch" in _packages(path)


def module_path(trace: Trace, block: int) -> str:
    """The path of a block's module; "" where there is none."""
    return trace.tables.modules[int(trace.blocks.module[block])].path


def sums(keys: Column, sizes: Column, length: int) -> Column:
    """int64[length], for each key the sum of its sizes."""
    found = np.zeros(length, np.int64)
    np.add.at(found, keys, sizes)
    return found


def _packages(path: PurePosixPath) -> Iterator[str]:
    """The name of the installed package that a file belongs to."""
    parts = path.parts
    for number, part in enumerate(parts[:-1]):
        if part in ("site-packages", "dist-packages"):
            yield parts[number + 1]
            return
    yield from parts[:1] if len(parts) > 1 else ()


def _asked(device: int | None, process: int | None) -> Iterator[str]:
    if process is not None:
        yield f"process {process}"
    if device is not None:
        yield f"cuda:{device}"
