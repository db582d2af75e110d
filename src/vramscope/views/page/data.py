"""A trace as the page's script reads it: the blocks that every figure in the browser is summed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vramscope.analysis.lookup import lines_of, place
from vramscope.run.trace import Blocks, Column, Tables, Trace
from vramscope.views.page.pack import packed

_KIND = ("size_bytes", "category", "module", "name", "stack")


def trace_text(trace: Trace, outside_bytes: int | None = None, more: Mapping[str, Any] | None = None) -> str:
    """The trace as one text (pack.py), with `more` in its header.

    Blocks that differ in nothing but their times share one row of the kinds' columns: a training step
    repeats the one before it.  `outside_bytes` holds where a span does not tell its own."""
    kinds, of_block = _kinds(trace.blocks)
    tables = _Used.of(trace, kinds)
    columns = {
        "born": trace.blocks.born,
        "lived": trace.blocks.freed - trace.blocks.born,
        "kind": of_block,
        "size": kinds["size_bytes"].astype(np.float64),
        "category": kinds["category"],
        "module": tables.modules.renumbered(kinds["module"]),
        "name": tables.names.renumbered(kinds["name"]),
        "stack": tables.stacks.renumbered(kinds["stack"]),
        "segment_born": trace.segments.born,
        "segment_lived": trace.segments.freed - trace.segments.born,
        "segment_size": trace.segments.size_bytes.astype(np.float64),
    }
    header = {"moments": trace.moments, "spans": _spans(trace, tables, outside_bytes)}
    return packed({**header, **tables.texts(trace.tables), **(more or {})}, columns)


def _kinds(blocks: Blocks) -> tuple[dict[str, Column], Column]:
    """The different rows of the columns of a kind, and each block's row among them.

    One column after another, since sorting whole rows takes ten times as long."""
    of_block: Column = np.zeros(len(blocks), np.int64)
    for name in _KIND:
        values, number = np.unique(getattr(blocks, name), return_inverse=True)
        _, of_block = np.unique(of_block * max(len(values), 1) + number.reshape(-1), return_inverse=True)
    _, first = np.unique(of_block, return_index=True)
    return {name: getattr(blocks, name)[first] for name in _KIND}, of_block.reshape(-1)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers of a table's rows that are used, and what they become when only those are kept."""

    used: Column

    @classmethod
    def of(cls, *columns: Column | Sequence[int]) -> _Numbers:
        every = [np.asarray(column, np.int64) for column in columns]
        return cls(np.unique(np.concatenate(every)))

    def renumbered(self, column: Column | Sequence[int]) -> Column:
        found: Column = np.searchsorted(self.used, np.asarray(column, np.int64))
        return found


@dataclass(frozen=True, slots=True)
class _Used:
    """The rows of a process's tables that one trace mentions; traces share tables, a page would repeat them."""

    modules: _Numbers
    names: _Numbers
    stacks: _Numbers
    frames: _Numbers

    @classmethod
    def of(cls, trace: Trace, kinds: Mapping[str, Column]) -> _Used:
        stacks = _Numbers.of([0], kinds["stack"], [span.stack for span in trace.spans])
        frames = [trace.tables.stacks[number] for number in stacks.used]
        modules, names = _Numbers.of([0], kinds["module"]), _Numbers.of([0], kinds["name"])
        return cls(modules, names, stacks, _Numbers.of([], *frames))

    def texts(self, tables: Tables) -> dict[str, Any]:
        """What the numbers stand for; each stack has its frames, innermost first, and the line it counts for."""
        frames = [tables.frames[number] for number in self.frames.used]
        lines, line_of_stack = lines_of(tables)
        used = _Numbers.of([0], line_of_stack[self.stacks.used])
        return {
            "modules": [tables.modules[number].path for number in self.modules.used],
            "names": [tables.names[number] for number in self.names.used],
            "stacks": [self.frames.renumbered(tables.stacks[n]).tolist() for n in self.stacks.used],
            "frames": [[place(each), int(each.user), each.text.strip()] for each in frames],
            "lines": [
                ["", ""] if (line := lines[number]) is None else [place(line), line.text.strip()]
                for number in used.used
            ],
            "line_of_stack": used.renumbered(line_of_stack[self.stacks.used]).tolist(),
        }


def _spans(trace: Trace, tables: _Used, outside_bytes: int | None) -> list[list[Any]]:
    stacks = tables.stacks.renumbered([span.stack for span in trace.spans]).tolist()
    outside = [outside_bytes if each.outside_bytes is None else each.outside_bytes for each in trace.spans]
    return [
        [span.first, span.phase, span.step, span.mark, stack, beside]
        for span, stack, beside in zip(trace.spans, stacks, outside, strict=True)
    ]
