"""The history of one allocator: every block and segment that one process had on one card.

A *moment* is an event's number, counted from 0 in the order in which the allocator saw them.
The state at moment m is that after event m.  A block is allocated at m where
``born <= m < freed``, and reserved memory is the segments where ``born <= m < freed``.
What was still there when the history ended has ``freed == moments``, what was there before it
began has ``born == -1``: no event of the history gave it out.

Columns are NumPy arrays of one length, so that a million events are analysed without a loop."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]

AUTOCAST, GRAD, RECOMPUTE, BACKWARD, EVALUATION = 1, 2, 4, 8, 16
"""Bits of a block's `flags`: how the code ran that asked for it (within autocast, with gradients recorded,
as the recomputation of a checkpoint, on a thread of autograd's backward, in a module in eval mode)."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of Python that a stack goes through."""

    file: str
    """Relative to the program's folder, or to the folder that the library is installed in."""
    line: int
    function: str
    user: bool = False
    """It is the program's own, not a library's."""
    text: str = ""
    """The source line, for the program's own ones."""


@dataclass(frozen=True, slots=True)
class Module:
    """One ``torch.nn.Module``; the sizes are of what it holds itself, without its children."""

    path: str
    """The class of the outermost module and the names below it: ``ResNet.layer1.0.conv1``; "" is no module."""
    kind: str = ""
    """Its class."""
    parameters: int = 0
    """Elements."""
    parameter_bytes: int = 0
    trainable: int = 0
    """Elements of the parameters with ``requires_grad``."""
    trainable_bytes: int = 0
    buffer_bytes: int = 0
    notes: tuple[str, ...] = ()
    """What the recorder noticed, as ``requires_grad attribute``: someone set ``module.requires_grad = …``."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One ``torch.optim.Optimizer`` that has stepped."""

    kind: str
    """Its class."""
    parameters: int
    """Elements of all its parameters."""
    foreach: bool | None = None
    fused: bool | None = None
    """As its first group has it; None: torch chooses."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Other settings of its first group that are numbers, texts or None (lr, betas …)."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What the columns' numbers stand for; the traces of one process share one."""

    modules: tuple[Module, ...] = (Module(""),)
    names: tuple[str, ...] = ("",)
    """Names of tensors: ``ResNet.layer1.0.conv1.weight``; "" is none."""
    frames: tuple[Frame, ...] = ()
    stacks: tuple[tuple[int, ...], ...] = ((),)
    """Numbers of frames, innermost first; the first stack is the empty one."""
    optimizers: tuple[Optimizer, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch between two boundaries of the program's phases; it ends where the next one begins."""

    first: int
    """Its first moment; a span without an event has the next one's."""
    phase: str
    """init, forward, backward, optimizer_step, zero_grad, evaluation or other."""
    step: int | None = None
    mark: str | None = None
    """The mark (`vramscope.mark`) that ended it."""
    stack: int = 0
    """Where the program was when it began."""
    time_us: int | None = None
    """When it began, in microseconds since 1970."""
    allocated_bytes: int | None = None
    """At its end, from torch's own counters, as the next three; None: not told."""
    reserved_bytes: int | None = None
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    outside_bytes: int | None = None
    """At its end: what the process held beside the allocator's memory."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """One row for each time that the allocator gave out a block, in order of birth."""

    address: Column
    """uint64"""
    requested_bytes: Column
    """int64, what was asked for."""
    size_bytes: Column
    """int64, what it takes of its segment: counted as allocated."""
    stream: Column
    """int32, index into `Trace.streams`."""
    segment: Column
    """int32, the row of the segment that it lay in."""
    born: Column
    """int64, the moment that it was allocated."""
    freed: Column
    """int64, the moment that the program gave it back."""
    returned: Column
    """int64, the moment that it could be used again: later than `freed` while another stream still used it."""
    category: Column
    """uint8, index into CATEGORIES."""
    module: Column
    """int32, index into `Tables.modules`."""
    name: Column
    """int32, index into `Tables.names`."""
    stack: Column
    """int32, index into `Tables.stacks`."""
    flags: Column
    """uint8, the bits above."""

    def __len__(self) -> int:
        return len(self.born)


@dataclass(frozen=True, slots=True)
class Segments:
    """One row for each piece of memory that the allocator obtained from the card."""

    address: Column
    """uint64"""
    size_bytes: Column
    """int64"""
    stream: Column
    """int32, index into `Trace.streams`."""
    pool: Column
    """int32, index into `Trace.pools`."""
    small: Column
    """bool, of the pool for requests of up to 1 MiB."""
    expandable: Column
    """bool, a mapped piece of an expandable segment."""
    born: Column
    """int64"""
    freed: Column
    """int64"""

    def __len__(self) -> int:
        return len(self.born)


BLOCK_TYPES = {
    "address": "<u8",
    "requested_bytes": "<i8",
    "size_bytes": "<i8",
    "stream": "<i4",
    "segment": "<i4",
    "born": "<i8",
    "freed": "<i8",
    "returned": "<i8",
    "category": "|u1",
    "module": "<i4",
    "name": "<i4",
    "stack": "<i4",
    "flags": "|u1",
}
SEGMENT_TYPES = {
    "address": "<u8",
    "size_bytes": "<i8",
    "stream": "<i4",
    "pool": "<i4",
    "small": "|b1",
    "expandable": "|b1",
    "born": "<i8",
    "freed": "<i8",
}


def no_blocks() -> Blocks:
    """A table without rows."""
    return Blocks(**{name: np.empty(0, kind) for name, kind in BLOCK_TYPES.items()})


def no_segments() -> Segments:
    """A table without rows."""
    return Segments(**{name: np.empty(0, kind) for name, kind in SEGMENT_TYPES.items()})


@dataclass(frozen=True, slots=True)
class Trace:
    """One process's memory on one card, from the first event to the last."""

    pid: int
    device: int
    moments: int
    """How many events there were."""
    times_us: Column
    """int64, one per moment, never falling: microseconds since 1970."""
    blocks: Blocks
    segments: Segments
    spans: tuple[Span, ...]
    tables: Tables
    streams: tuple[int, ...] = (0,)
    """The handles of the streams; 0 is the default one."""
    pools: tuple[tuple[int, int], ...] = ((0, 0),)
    """The allocator's pools; (0, 0) is the one that everything comes from but CUDA graphs' and MemPools'."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The allocator's settings, as torch's snapshot tells them."""
    whole: bool = True
    """The history begins with an empty allocator.  False: what was there before is known only as far as it
    was still there at the end."""
    notes: tuple[str, ...] = ()
    """What is not known of it, as sentences."""


def rows(table: Blocks | Segments) -> int:
    """The length that all columns have; ValueError if they differ."""
    lengths = {len(getattr(table, each.name)) for each in fields(table)}
    if len(lengths) > 1:
        raise ValueError(f"columns of different lengths: {sorted(lengths)}")
    return lengths.pop()
