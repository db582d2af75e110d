"""What the peak would be without some memory: always the whole curve again, and its highest point.

Once some bytes are gone, the next highest moment limits, so a saving is the old peak minus the new
one and never simply the bytes that are removed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.run.trace import Column


@dataclass(frozen=True, slots=True)
class Saving:
    """What a change does to the peak of the allocated bytes."""

    saved_bytes: int
    """The old peak minus the new one; below zero: it rises."""
    moment: int
    """Where the new peak is."""


class Change:
    """Bytes taken from the allocated curve, or added to it."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._steps = np.zeros(facts.trace.moments + 1, np.int64)

    def remove(self, rows: Column, first: Column | int = 0, end: Column | int | None = None) -> Change:
        """Takes blocks away (a mask or row numbers), of their lives only what lies from `first` to before `end`."""
        blocks = self._facts.blocks
        begin = np.maximum(blocks.born[rows], first)
        stop = blocks.freed[rows] if end is None else np.minimum(blocks.freed[rows], end)
        return self.add(begin, np.maximum(begin, stop), -blocks.size_bytes[rows])

    def add(self, begin: Column | int, end: Column | int, sizes: Column | int) -> Change:
        """Adds bytes (below zero: takes them) over stretches of moments."""
        moments = self._facts.trace.moments
        np.add.at(self._steps, np.clip(begin, 0, moments), sizes)
        np.subtract.at(self._steps, np.clip(end, 0, moments), sizes)
        return self

    def saving(self) -> Saving:
        """The peak after the change against the one before."""
        curve = self._facts.allocated + np.cumsum(self._steps[:-1])
        moment = int(np.argmax(curve))
        return Saving(self._facts.peak_bytes - int(curve[moment]), moment)


def highest_together(facts: Facts, rows: Column) -> int:
    """The most bytes that some blocks had at once."""
    blocks = facts.blocks
    moments = np.concatenate([blocks.born[rows], blocks.freed[rows]])
    change = np.concatenate([blocks.size_bytes[rows], -blocks.size_bytes[rows]])
    return int(np.cumsum(change[np.lexsort((change, moments))]).max(initial=0))
