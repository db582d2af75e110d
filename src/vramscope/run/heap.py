"""The state of an allocator while its events go by: which memory is free, which block is where.

`run.replay` drives it, and does the frequent events itself."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from dataclasses import dataclass, field

from vramscope.run.rules import MIN_BLOCK, SMALL_SIZE

BEFORE = -1
"""The moment of what was there before the history."""
_PATIENCE = 2000
"""So many events at unknown places are looked into, one by one; a history of nothing else stays quick."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A block that was there before the history."""

    address: int
    size: int
    requested: int
    pending: bool = False
    """The program has given it back already, another stream still uses it."""


@dataclass(frozen=True, slots=True)
class Held:
    """A segment, or a mapped piece of one, that was there before the history."""

    address: int
    size: int
    stream: int = 0
    pool: int = 0
    expandable: bool = False
    blocks: tuple[Placed, ...] = ()
    """In order of address; what lies between them is free."""


@dataclass(slots=True)
class Heap:
    """The state of the allocator while its events go by.

    A *home* is what a block can be merged within: a segment of cudaMalloc (its row), or all mapped pieces
    of one stream and pool (a number below zero)."""

    moments: int
    free: dict[int, tuple[int, int]] = field(default_factory=dict)
    """From the address of a free block to its end and its home."""
    begins: dict[int, int] = field(default_factory=dict)
    """From the end of a free block to its address."""
    live: dict[int, int] = field(default_factory=dict)
    """From the address of a block to its row, until it can be used again."""
    held: list[Placed] = field(default_factory=list)
    held_streams: list[int] = field(default_factory=list)
    # one per block row
    ends: list[int] = field(default_factory=list)
    homes: list[int] = field(default_factory=list)
    freed: list[int] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)
    pieces_of: list[int] = field(default_factory=list)
    """The segment row that the block lay in when it was given out."""
    # one per segment row
    addresses: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    streams: list[int] = field(default_factory=list)
    pools: list[int] = field(default_factory=list)
    expandable: list[bool] = field(default_factory=list)
    born: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    # the segments that are there now
    segments: dict[int, int] = field(default_factory=dict)
    """From the address of a segment of cudaMalloc to its row."""
    mapped: list[int] = field(default_factory=list)
    """The addresses of mapped pieces, sorted."""
    mapped_rows: dict[int, int] = field(default_factory=dict)
    parts: dict[int, list[int]] = field(default_factory=dict)
    """From a mapped piece that was cut to the rows of its parts, itself included."""
    origin: dict[int, int] = field(default_factory=dict)
    own: dict[int, int] = field(default_factory=dict)
    """From a block without a known place to the segment row that it was given."""
    faults: Counter[str] = field(default_factory=Counter)
    patience: int = _PATIENCE

    # -- segments -------------------------------------------------------------------------------
    def hold(self, held: Held) -> None:
        """A segment that was there before, with its blocks and the free ones between them."""
        if held.expandable:
            self.map(BEFORE, held.address, held.size, held.stream, held.pool)
            home = _home(held.stream, held.pool)
        else:
            home = self.add_segment(BEFORE, held.address, held.size, held.stream, held.pool)
        at, end = self._claimed(held.address)
        for block in held.blocks:
            if block.address < at or block.address + block.size > end:
                self.faults["a block of the beginning lies outside its segment or on another"] += 1
                continue
            self._put_free(at, block.address, home)
            at = block.address + block.size
            self._put_held(block, held.stream, home)
        self._put_free(at, end, home)

    def add_segment(self, moment: int, address: int, size: int, stream: int, pool: int) -> int:
        """A segment from cudaMalloc, all of it free; returns its row."""
        if address in self.segments:
            self.faults["a segment was obtained where one is already"] += 1
            self.drop_segment(moment, address, None)
        row = self._row(moment, address, size, stream, pool, False)
        self.segments[address] = row
        self._put_free(address, address + size, row)
        return row

    def drop_segment(self, moment: int, address: int, size: int | None) -> None:
        """A segment goes back to the card; what still lay in it ends with it."""
        row = self.segments.pop(address, None)
        if row is None:
            self.faults["a segment was given back that is not known"] += 1
            return
        end = address + self.sizes[row]
        self.gone[row] = moment
        if self.free.get(address) == (end, row):
            self._take_free(address)
            return
        self.faults["a segment was given back while blocks lay in it"] += 1
        for each in [at for at, (_, home) in self.free.items() if home == row]:
            self._take_free(each)
        for each in [at for at, block in self.live.items() if self.homes[block] == row]:
            self._end(self.live.pop(each), moment)

    def map(self, moment: int, address: int, size: int, stream: int, pool: int) -> None:
        """A range of an expandable segment is mapped: free, and one with what is free beside it."""
        if address in self.mapped_rows:
            self.faults["a range was mapped where one is already"] += 1
            return
        row = self._row(moment, address, size, stream, pool, True)
        insort(self.mapped, address)
        self.mapped_rows[address] = row
        self.merge(address, address + size, _home(stream, pool))

    def unmap(self, moment: int, address: int, size: int) -> None:
        """A range of an expandable segment is unmapped: all of it was free, in one block."""
        end = address + size
        if not self._cut_mapped(moment, address, end):
            self.faults["a range was unmapped that is not mapped"] += 1
            return
        at = address if address in self.free else self._free_around(address)
        if at is None or self.free[at][0] < end:
            self.faults["a range was unmapped while blocks lay in it"] += 1
            return
        stop, home = self._take_free(at)
        self._put_free(at, address, home)
        self._put_free(end, stop, home)

    # -- blocks ---------------------------------------------------------------------------------
    def merge(self, start: int, end: int, home: int) -> None:
        """A block becomes free; free neighbours of the same home become one with it."""
        after = self.free.get(end)
        if after is not None and after[1] == home:
            self._take_free(end)
            end = after[0]
        before = self.begins.get(start)
        if before is not None and self.free[before][1] == home:
            del self.free[before]
            del self.begins[start]
            start = before
        self.free[start] = (end, home)
        self.begins[end] = start

    def misplaced(self, moment: int, address: int, size: int, stream: int) -> tuple[int, int]:
        """The end and the home of a block that begins where no free block does."""
        if address in self.live:
            self.faults["a block was given out twice"] += 1
            self._force_free(moment, address)
            entry = self.free.get(address)
            if entry is not None and entry[0] >= address + size:
                return self.cut(address, size, MIN_BLOCK)
        self.patience -= 1
        around = self._free_around(address) if self.patience >= 0 else None
        if around is not None and self.free[around][0] >= address + size:
            self.faults["a block was given out from the middle of a free one"] += 1
            end, home = self._take_free(around)
            if not self._grow_before(around, address, home):
                self._put_free(around, address, home)
            self._put_free(address, end, home)
            return self.cut(address, size, MIN_BLOCK)
        self.faults["a block was given out where no memory is known"] += 1
        row = self._row(moment, address, size, stream, 0, False)
        self.own[len(self.ends)] = row
        return address + size, row

    def cut(self, address: int, size: int, least: int) -> tuple[int, int]:
        """Takes a block off the free one that begins there: its end and its home."""
        end, home = self._take_free(address)
        stop = address + size
        if end - stop < least:
            return end, home
        self._put_free(stop, end, home)
        return stop, home

    def give(self, end: int, home: int, address: int) -> None:
        """The row of a block that is given out."""
        self.live[address] = len(self.ends)
        self.ends.append(end)
        self.homes.append(home)
        self.freed.append(self.moments)
        self.returned.append(self.moments)
        self.pieces_of.append(home if home >= 0 else self.piece_at(address))

    def piece_at(self, address: int) -> int:
        """The row of the mapped piece that an address lies in."""
        return self.mapped_rows[self.mapped[bisect_right(self.mapped, address) - 1]]

    def back(self, moment: int, block: int, address: int) -> None:
        """A block can be used again."""
        self.returned[block] = moment
        own = self.own.pop(block, None)
        if own is not None:
            self.gone[own] = moment
        else:
            self.merge(address, self.ends[block], self.homes[block])

    def _force_free(self, moment: int, address: int) -> None:
        block = self.live.pop(address)
        self.freed[block] = min(self.freed[block], moment)
        self.back(moment, block, address)

    def _end(self, block: int, moment: int) -> None:
        self.freed[block] = min(self.freed[block], moment)
        self.returned[block] = moment

    def _put_held(self, block: Placed, stream: int, home: int) -> None:
        self.held.append(block)
        self.held_streams.append(stream)
        self.give(block.address + block.size, home, block.address)
        if block.pending:
            self.freed[-1] = BEFORE

    def _grow_before(self, start: int, address: int, home: int) -> bool:
        """A block of the beginning reaches up to `address` after all, if it ends at `start`.

        Of a block that was there before and did not live to the end only the bytes asked for are known."""
        if address - start > SMALL_SIZE:
            return False
        for block in range(len(self.held)):
            if self.ends[block] == start and self.homes[block] == home and self.freed[block] == self.moments:
                self.ends[block] = address
                return True
        return False

    # -- free blocks and rows -------------------------------------------------------------------
    def _put_free(self, start: int, end: int, home: int) -> None:
        if start < end:
            self.free[start] = (end, home)
            self.begins[end] = start

    def _take_free(self, start: int) -> tuple[int, int]:
        entry = self.free.pop(start)
        self.begins.pop(entry[0], None)
        return entry

    def _claimed(self, address: int) -> tuple[int, int]:
        """Takes the free block that an address lies in out again, to be dealt out anew."""
        at = address if address in self.free else self._free_around(address)
        assert at is not None
        end, home = self._take_free(at)
        self._put_free(at, address, home)
        return address, end

    def _free_around(self, address: int) -> int | None:
        return next((at for at, (end, _) in self.free.items() if at <= address < end), None)

    def _row(self, moment: int, address: int, size: int, stream: int, pool: int, expandable: bool) -> int:
        self.addresses.append(address)
        self.sizes.append(size)
        self.streams.append(stream)
        self.pools.append(pool)
        self.expandable.append(expandable)
        self.born.append(moment)
        self.gone.append(self.moments)
        return len(self.addresses) - 1

    def _cut_mapped(self, moment: int, address: int, end: int) -> bool:
        """Ends the pieces in a range, and cuts those that reach beyond it; False if there is none."""
        first = max(bisect_right(self.mapped, address) - 1, 0)
        found = False
        for at in self.mapped[first:]:
            if at >= end:
                break
            row = self.mapped_rows[at]
            if at + self.sizes[row] <= address:
                continue
            found = True
            if at < address:
                row = self._split_row(row, address)
            if address <= self.addresses[row] and self.addresses[row] + self.sizes[row] > end:
                self._split_row(row, end)
            self.gone[row] = moment
            del self.mapped_rows[self.addresses[row]]
            self.mapped.remove(self.addresses[row])
        return found

    def _split_row(self, row: int, at: int) -> int:
        """Makes two rows of one that is mapped; returns the one that begins at `at`."""
        end = self.addresses[row] + self.sizes[row]
        self.sizes[row] = at - self.addresses[row]
        upper = self._row(self.born[row], at, end - at, self.streams[row], self.pools[row], True)
        self.parts.setdefault(self.origin.get(row, row), [self.origin.get(row, row)]).append(upper)
        self.origin[upper] = self.origin.get(row, row)
        insort(self.mapped, at)
        self.mapped_rows[at] = upper
        return upper


def _home(stream: int, pool: int) -> int:
    """All expandable memory of a stream and pool: no two of its address ranges touch."""
    return -1 - (stream * 4096 + pool)
