"""The memory that an allocator has from the card while its events go by: one row for each piece of it.

A segment of cudaMalloc is one piece from its beginning to its end.  Of expandable segments parts are
unmapped: the row of a mapped range is then cut, into rows that are there and rows that are gone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field

import numpy as np

from vramscope.run.trace import Column

_MOST_MAPPED = 1 << 15
"""Ranges at one time: in pages of 20 MiB they are 640 GiB."""


@dataclass(slots=True)
class Pieces:
    """Lists with one entry per row, and where those are that are there now."""

    moments: int
    """The number of events: the end of what never goes."""
    addresses: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    streams: list[int] = field(default_factory=list)
    pools: list[int] = field(default_factory=list)
    expandable: list[bool] = field(default_factory=list)
    born: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    segments: dict[int, int] = field(default_factory=dict)
    """From the address of a segment of cudaMalloc to its row."""
    _mapped: list[int] = field(default_factory=list)
    """The addresses of mapped ranges, sorted; no two of them overlap."""
    _mapped_rows: dict[int, int] = field(default_factory=dict)
    _parts: dict[int, list[int]] = field(default_factory=dict)
    """From a range that was cut to the rows of its parts, itself included."""
    _whole: dict[int, int] = field(default_factory=dict)
    """From such a part to the range that it was cut from."""

    def add(
        self, moment: int, address: int, size: int, stream: int, pool: int, expandable: bool = False
    ) -> int:
        """A new row; returns its number."""
        self.addresses.append(address)
        self.sizes.append(size)
        self.streams.append(stream)
        self.pools.append(pool)
        self.expandable.append(expandable)
        self.born.append(moment)
        self.gone.append(self.moments)
        return len(self.addresses) - 1

    def map(self, moment: int, address: int, size: int, stream: int, pool: int) -> bool:
        """A range is mapped; False if some of it is already, or if there is nothing of it."""
        if size <= 0:
            return False
        index = bisect_right(self._mapped, address)
        following = self._mapped[index] if index < len(self._mapped) else address + size
        if self.mapped_at(address) >= 0 or following < address + size or len(self._mapped) >= _MOST_MAPPED:
            return False
        self._put(address, self.add(moment, address, size, stream, pool, expandable=True))
        return True

    def unmap(self, moment: int, address: int, size: int) -> bool:
        """A range is unmapped; False if none of it was mapped."""
        end = address + size
        within = self._within(address, end) if size > 0 else []
        for row in within:
            if self.addresses[row] < address:
                row = self._cut(row, address)
            if self.addresses[row] + self.sizes[row] > end:
                self._cut(row, end)
            self.gone[row] = moment
            del self._mapped_rows[self.addresses[row]]
            del self._mapped[bisect_left(self._mapped, self.addresses[row])]
        return bool(within)

    def mapped_at(self, address: int) -> int:
        """The row of the mapped range that an address lies in; -1 if there is none."""
        index = bisect_right(self._mapped, address) - 1
        if index < 0:
            return -1
        row = self._mapped_rows[self._mapped[index]]
        return row if address < self.addresses[row] + self.sizes[row] else -1

    def mapped_rows(self) -> list[int]:
        """The rows of the ranges that are mapped now, in order of address."""
        return [self._mapped_rows[at] for at in self._mapped]

    def parts_with(self, rows: Column, address: Column) -> Column:
        """The rows themselves, and of those that were cut since the part that each address lies in."""
        found: Column = rows.copy()
        whole = np.array([self._whole.get(row, row) for row in range(len(self.sizes))], np.int32)[rows]
        order = np.argsort(whole, kind="stable")
        by_whole = whole[order]
        for row in np.unique(whole[np.isin(whole, list(self._parts))]).tolist():
            parts = self._parts[row]
            chosen = order[slice(*np.searchsorted(by_whole, [row, row + 1]))]
            ranked = np.array(sorted(parts, key=self.addresses.__getitem__), np.int32)
            begins = np.array([self.addresses[each] for each in ranked], np.uint64)
            found[chosen] = ranked[np.searchsorted(begins, address[chosen], side="right") - 1]
        return found

    def _within(self, address: int, end: int) -> list[int]:
        """The rows of the mapped ranges that have something of a range."""
        first = bisect_right(self._mapped, address) - 1
        first += self.mapped_at(address) < 0
        return [self._mapped_rows[at] for at in self._mapped[first : bisect_left(self._mapped, end)]]

    def _put(self, address: int, row: int) -> None:
        insort(self._mapped, address)
        self._mapped_rows[address] = row

    def _cut(self, row: int, at: int) -> int:
        """Makes two rows of one; returns the one that begins at `at`."""
        end = self.addresses[row] + self.sizes[row]
        self.sizes[row] = at - self.addresses[row]
        upper = self.add(self.born[row], at, end - at, self.streams[row], self.pools[row], expandable=True)
        whole = self._whole.get(row, row)
        self._parts.setdefault(whole, [whole]).append(upper)
        self._whole[upper] = whole
        self._put(at, upper)
        return upper
