"""Traces built by hand: each call is one event of an allocator, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vramscope.run.categories import INDEX
from vramscope.run.run import Run
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


class Story:
    """A trace in the making; every block gets a place of its own unless it is told to share a segment."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, int]] = []
        self.segments: list[dict[str, int]] = []
        self.spans: list[Span] = []
        self.modules = [Module("")]
        self.names = [""]
        self.frames: list[Frame] = []
        self.stacks: list[tuple[int, ...]] = [()]
        self.optimizers: list[Optimizer] = []
        self.moment = 0
        self._next_address = 0x7F0000000000

    def span(
        self, phase: str, step: int | None = None, mark: str | None = None, line: int | None = None
    ) -> Story:
        """Begins a span; `mark` is the mark that will end it."""
        stack = 0 if line is None else self.stack(("train.py", line, "main", True))
        self.spans.append(Span(self.moment, phase, step, mark, stack, time_us=self.moment * 1000))
        return self

    def module(self, path: str, kind: str = "Linear", **sizes: object) -> int:
        """The number of a module, new or known by its path."""
        for number, module in enumerate(self.modules):
            if module.path == path:
                return number
        self.modules.append(Module(path, kind, **sizes))  # type: ignore[arg-type]
        return len(self.modules) - 1

    def stack(self, *frames: tuple[str, int, str, bool]) -> int:
        """The number of a stack, innermost frame first: (file, line, function, user)."""
        numbers = []
        for frame in (Frame(*each) for each in frames):
            if frame not in self.frames:
                self.frames.append(frame)
            numbers.append(self.frames.index(frame))
        if tuple(numbers) not in self.stacks:
            self.stacks.append(tuple(numbers))
        return self.stacks.index(tuple(numbers))

    def segment(self, size: int, *, small: bool = False) -> int:
        """An event: a segment from the card; returns its number."""
        address, self._next_address = self._next_address, self._next_address + size
        row = {
            "address": address,
            "size_bytes": size,
            "stream": 0,
            "pool": 0,
            "small": int(small),
            "expandable": 0,
        }
        self.segments.append({**row, "born": self.moment, "freed": -1, "used": 0})
        self.moment += 1
        return len(self.segments) - 1

    def free_segment(self, number: int) -> None:
        """An event: a segment goes back to the card."""
        self.segments[number]["freed"] = self.moment
        self.moment += 1

    def alloc(
        self,
        size: int,
        category: str = "temporary",
        *,
        module: str = "",
        name: str = "",
        line: int | None = None,
        requested: int | None = None,
        segment: int | None = None,
        flags: int = 0,
    ) -> int:
        """An event: a block (after one for its segment, if none is named); returns its number."""
        if segment is None:
            segment = self.segment(size)
        home = self.segments[segment]
        if name and name not in self.names:
            self.names.append(name)
        self.blocks.append(
            {
                "address": home["address"] + home["used"],
                "requested_bytes": size if requested is None else requested,
                "size_bytes": size,
                "stream": 0,
                "segment": segment,
                "born": self.moment,
                "freed": -1,
                "returned": -1,
                "category": INDEX[category],
                "module": self.module(module) if module else 0,
                "name": self.names.index(name),
                "stack": 0 if line is None else self.stack(("train.py", line, "main", True)),
                "flags": flags,
            }
        )
        home["used"] += size
        self.moment += 1
        return len(self.blocks) - 1

    def free(self, number: int) -> None:
        """An event: the program gives a block back."""
        self.blocks[number]["freed"] = self.blocks[number]["returned"] = self.moment
        self.moment += 1

    def trace(self) -> Trace:
        """The trace of all events so far."""
        columns = {name: self._column(self.blocks, name, kind) for name, kind in BLOCK_TYPES.items()}
        pieces = {name: self._column(self.segments, name, kind) for name, kind in SEGMENT_TYPES.items()}
        return Trace(
            pid=1,
            device=0,
            moments=self.moment,
            times_us=np.arange(self.moment, dtype=np.int64) * 1000,
            blocks=Blocks(**columns),
            segments=Segments(**pieces),
            spans=tuple(self.spans or [Span(0, "other")]),
            tables=Tables(
                tuple(self.modules),
                tuple(self.names),
                tuple(self.frames),
                tuple(self.stacks),
                tuple(self.optimizers),
            ),
        )

    def run(self) -> Run:
        """A run of this trace alone."""
        return replace(Run(None, origin="imported", name="story"), traces=(self.trace(),))

    def _column(self, rows: Sequence[dict[str, int]], name: str, kind: str) -> np.ndarray:
        values = [row[name] for row in rows]
        if name in ("freed", "returned"):
            values = [self.moment if value < 0 else value for value in values]
        return np.array(values, dtype=kind)


def training_story() -> Story:
    """Two steps of a small model: parameters, then per step an input, activations, gradients, Adam's states."""
    story = Story().span("init", 1)
    story.optimizers.append(Optimizer("Adam", 3072, None, None, {"lr": 0.001}))
    weights = [
        story.alloc(4096, "parameter", module=f"Net.{name}", name=f"Net.{name}.weight", line=3)
        for name in ("a", "b", "c")
    ]
    assert weights
    grads: list[int] = []
    for step in (1, 2):
        story.span("forward", step, line=10)
        given = story.alloc(8192, "input", name="", line=9)
        kept = [story.alloc(16384, "activation", module=f"Net.{name}", line=10) for name in ("a", "b", "c")]
        loss = story.alloc(512, "activation", line=11, requested=4)
        story.span("backward", step, line=12)
        for name, block in zip(("c", "b", "a"), reversed(kept), strict=True):
            scratch = story.alloc(2048, "workspace", module=f"Net.{name}", line=12, flags=8)
            grads.append(
                story.alloc(
                    4096, "gradient", module=f"Net.{name}", name=f"Net.{name}.weight", line=12, flags=8
                )
            )
            story.free(scratch)
            story.free(block)
        story.span("optimizer_step", step, line=13)
        if step == 1:
            for name in ("a", "b", "c"):
                for state in ("exp_avg", "exp_avg_sq"):
                    story.alloc(
                        4096,
                        "optimizer_state",
                        module=f"Net.{name}",
                        name=f"Net.{name}.weight {state}",
                        line=13,
                    )
        update = story.alloc(12288, "temporary", line=13)
        story.free(update)
        story.span("zero_grad", step, line=14)
        for grad in grads:
            story.free(grad)
        grads.clear()
        story.span("other", step, line=15)
        story.free(loss)
        story.free(given)
    return story
