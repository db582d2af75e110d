"""What a snapshot does not tell, as sentences: a trace's notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from vramscope.run.imported.file import Dump
from vramscope.run.imported.stacks import PYTHON
from vramscope.units import format_bytes

if TYPE_CHECKING:
    from vramscope.run.imported.history import History


def notes_of(history: History, dump: Dump) -> tuple[str, ...]:
    """All that holds of this history."""
    return (*_beginning(history), *_knowledge(history, dump), *_events(history), *_faults(history))


def _beginning(history: History) -> Iterator[str]:
    if not history.recorded:
        yield (
            "No history was recorded: what was allocated when the snapshot was taken is shown, "
            "each block as if it had come just then."
        )
        return
    held = history.start.held
    if not held:
        return
    size = sum(block.size for each in held for block in each.blocks)
    yield (f"The history begins with {format_bytes(size)} allocated already; earlier peaks are not known.")
    if history.start.estimated:
        yield (
            f"Of {history.start.estimated} blocks that were there before and were freed only what was asked for "
            "is told: their sizes follow from the allocator's rules."
        )


def _knowledge(history: History, dump: Dump) -> Iterator[str]:
    says = np.array(dump.stacks.says)[history.stacks]
    if history.recorded and not history.described and not np.any(says & PYTHON):
        yield "It has no stacks: phases, lines and most categories are not known (record with context='all')."
    elif not history.described:
        yield "Modules are not known; phases and categories are as far as stacks and lifetimes tell."
    if history.recorded and not history.events.time_us.any():
        yield "It has no times: events are in order, but when they were is not known."


def _events(history: History) -> Iterator[str]:
    asked = history.device.out_of_memory
    if asked:
        times = "once" if len(asked) == 1 else f"{len(asked)} times"
        yield f"The allocator ran out of memory {times}; {format_bytes(asked[0])} were asked for first."
    if history.device.left_out:
        yield f"{history.device.left_out} entries make no sense and were left out."


def _faults(history: History) -> Iterator[str]:
    if history.differing:
        shown = "the snapshot's own are shown" if history.corrected else "those of the events are shown"
        yield f"{history.differing} blocks at the end have other sizes than the events lead to: {shown}."
    if history.missing:
        yield f"{history.missing} blocks at the end are only in the events or only in the snapshot's segments."
    if history.found.faults:
        yield f"Events that do not fit this allocator: {'; '.join(history.found.faults)}."
