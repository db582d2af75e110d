"""The state of an allocator while its events go by: which memory is free, which block is where.

`run.replay` drives it, and does the frequent events itself.  It trusts nothing: what cannot be is counted in
`faults`, and the rare looks at everything have a limit (`work`), so that no history takes for ever."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from vramscope.run.pieces import Pieces
from vramscope.run.rules import MIN_BLOCK, SMALL_SIZE

BEFORE = -1
"""The moment of what was there before the history."""
_WORK = 30_000_000
"""So many blocks are looked at one by one: some seconds.  What would need more is left as it is."""


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
    """Free and live blocks.

    A *home* is what a block can be merged within: a segment of cudaMalloc (its row), or all mapped pieces
    of one stream and pool (a number below zero)."""

    moments: int
    pieces: Pieces
    free: dict[int, tuple[int, int]] = field(default_factory=dict)
    """From the address of a free block to its end and its home."""
    begins: dict[int, int] = field(default_factory=dict)
    """From the end of a free block to its address."""
    live: dict[int, int] = field(default_factory=dict)
    """From the address of a block to its row, until it can be used again."""
    held: list[Placed] = field(default_factory=list)
    held_streams: list[int] = field(default_factory=list)
    held_ends: dict[int, int] = field(default_factory=dict)
    """From the end of a block of before to its row."""
    own: dict[int, int] = field(default_factory=dict)
    """From a block without a known place to the segment row that it was given."""
    faults: Counter[str] = field(default_factory=Counter)
    work: int = _WORK
    # one per block row
    ends: list[int] = field(default_factory=list)
    homes: list[int] = field(default_factory=list)
    freed: list[int] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)
    pieces_of: list[int] = field(default_factory=list)
    """The segment row that the block lay in when it was given out."""

    # -- segments -------------------------------------------------------------------------------
    def hold(self, held: Held) -> None:
        """A segment that was there before, with its blocks and the free ones between them."""
        home = self._held_home(held)
        if home is None:
            self.faults["a segment of the beginning lies on another"] += 1
            return
        at, end = held.address, held.address + held.size
        for block in held.blocks:
            if block.address < at or block.address + block.size > end or block.address in self.live:
                self.faults["a block of the beginning lies outside its segment or on another"] += 1
                continue
            self._free_between(at, block.address, home)
            at = block.address + block.size
            self._put_held(block, held.stream, home)
        self._free_between(at, end, home)

    def add_segment(self, moment: int, address: int, size: int, stream: int, pool: int) -> None:
        """A segment from cudaMalloc, all of it free."""
        if address in self.pieces.segments:
            self.faults["a segment was obtained where one is already"] += 1
            self.drop_segment(moment, address)
        row = self.pieces.add(moment, address, size, stream, pool)
        self.pieces.segments[address] = row
        self._put_free(address, address + size, row)

    def drop_segment(self, moment: int, address: int) -> None:
        """A segment goes back to the card; what still lay in it ends with it."""
        row = self.pieces.segments.pop(address, None)
        if row is None:
            self.faults["a segment was given back that is not known"] += 1
            return
        self.pieces.gone[row] = moment
        end = address + self.pieces.sizes[row]
        if self.free.get(address) == (end, row):
            self._take_free(address)
        else:
            self.faults["a segment was given back while blocks lay in it"] += 1
            self._clear(moment, address, end)

    def map(self, moment: int, address: int, size: int, stream: int, pool: int) -> None:
        """A range of an expandable segment is mapped: free, and one with what is free beside it."""
        if self.pieces.map(moment, address, size, stream, pool):
            self.merge(address, address + size, _home(stream, pool))
        else:
            self.faults["a range was mapped where one is already"] += 1

    def unmap(self, moment: int, address: int, size: int) -> None:
        """A range of an expandable segment is unmapped: all of it was free, in one block."""
        if not self.pieces.unmap(moment, address, size):
            self.faults["a range was unmapped that is not mapped"] += 1
            return
        end = address + size
        around = self._free_around(address)
        if around is None or self.free[around][0] < end:
            self.faults["a range was unmapped while blocks lay in it"] += 1
            self._clear(moment, address, end)
            return
        stop, home = self._take_free(around)
        self._free_between(around, address, home)
        self._free_between(end, stop, home)

    # -- blocks ---------------------------------------------------------------------------------
    def merge(self, start: int, end: int, home: int) -> None:
        """A block becomes free; free neighbours of the same home become one with it."""
        after = self.free.get(end)
        if after is not None and after[1] == home:
            self._take_free(end)
            end = after[0]
        before = self.begins.get(start)
        if before is not None and self.free.get(before) == (start, home):
            self._take_free(before)
            start = before
        self._put_free(start, end, home)

    def misplaced(self, moment: int, address: int, size: int, stream: int) -> tuple[int, int, int]:
        """The end, the home and the segment row of a block that begins where no free block for it does."""
        if address in self.live:
            self.faults["a block was given out twice"] += 1
            self._force_free(moment, address)
        around = self._free_around(address)
        if around is not None and self.free[around][0] >= address + size:
            end, home = self._take_free(around)
            piece = self.piece(home, address)
            if piece >= 0:
                return *self._inside(around, address, size, end, home), piece
        self.faults["a block was given out where no memory is known"] += 1
        row = self.pieces.add(moment, address, size, stream, 0)
        self.own[len(self.ends)] = row
        return address + size, row, row

    def piece(self, home: int, address: int) -> int:
        """The segment row that an address of a home lies in; -1 if that is gone."""
        row = home if home >= 0 else self.pieces.mapped_at(address)
        return row if row >= 0 and self.pieces.gone[row] == self.moments else -1

    def give(self, address: int, end: int, home: int, piece: int) -> None:
        """The row of a block that is given out."""
        self.live[address] = len(self.ends)
        self.ends.append(end)
        self.homes.append(home)
        self.freed.append(self.moments)
        self.returned.append(self.moments)
        self.pieces_of.append(piece)

    def back(self, moment: int, block: int, address: int) -> None:
        """A block can be used again."""
        self.returned[block] = moment
        own = self.own.pop(block, None)
        if own is not None:
            self.pieces.gone[own] = moment
        else:
            self.merge(address, self.ends[block], self.homes[block])

    def _inside(self, around: int, address: int, size: int, end: int, home: int) -> tuple[int, int]:
        """Takes a block from within a free one: its end and its home."""
        if around < address:
            self.faults["a block was given out from the middle of a free one"] += 1
            if not self._grow_before(around, address, home):
                self._put_free(around, address, home)
        stop = address + size
        if end - stop < MIN_BLOCK:
            return end, home
        self._put_free(stop, end, home)
        return stop, home

    def _grow_before(self, start: int, address: int, home: int) -> bool:
        """A block of the beginning reaches up to `address` after all, if it ends at `start`.

        Of a block that was there before and did not live to the end only the bytes asked for are known."""
        block = self.held_ends.get(start)
        if block is None or address - start > SMALL_SIZE or self.returned[block] != self.moments:
            return False
        self.ends[block] = address
        return self.homes[block] == home

    def _force_free(self, moment: int, address: int) -> None:
        block = self.live.pop(address)
        self.freed[block] = min(self.freed[block], moment)
        self.back(moment, block, address)

    def _put_held(self, block: Placed, stream: int, home: int) -> None:
        end = block.address + block.size
        self.held_ends[end] = len(self.ends)
        self.held.append(block)
        self.held_streams.append(stream)
        self.give(block.address, end, home, self.piece(home, block.address))
        if block.pending:
            self.freed[-1] = BEFORE

    def _held_home(self, held: Held) -> int | None:
        """The home of a segment of before, now that it is there; None if its place is taken."""
        if held.expandable:
            there = self.pieces.map(BEFORE, held.address, held.size, held.stream, held.pool)
            return _home(held.stream, held.pool) if there else None
        if held.address in self.pieces.segments:
            return None
        row = self.pieces.add(BEFORE, held.address, held.size, held.stream, held.pool)
        self.pieces.segments[held.address] = row
        return row

    # -- free blocks ----------------------------------------------------------------------------
    def _put_free(self, start: int, end: int, home: int) -> None:
        known = self.free.get(start)
        if known is not None:
            self.begins.pop(known[0], None)
        self.free[start] = (end, home)
        self.begins[end] = start

    def _take_free(self, start: int) -> tuple[int, int]:
        entry = self.free.pop(start)
        self.begins.pop(entry[0], None)
        return entry

    def _free_between(self, start: int, end: int, home: int) -> None:
        if start < end:
            self.merge(start, end, home)

    def _free_around(self, address: int) -> int | None:
        """The address of the free block that an address lies in."""
        if address in self.free:
            return address
        if not self._may_look_at(len(self.free)):
            return None
        return next((at for at, (end, _) in self.free.items() if at <= address < end), None)

    def _clear(self, moment: int, address: int, end: int) -> None:
        """Ends all that lies in a range which is gone.

        Where it may not look any more, what is left there is found to be gone when it is used."""
        if not self._may_look_at(len(self.free) + len(self.live)):
            return
        for at in [at for at, (stop, _) in self.free.items() if at < end and stop > address]:
            stop, home = self._take_free(at)
            self._free_between(at, address, home)
            self._free_between(end, stop, home)
        for at in [at for at, row in self.live.items() if at < end and self.ends[row] > address]:
            block = self.live.pop(at)
            self.freed[block] = min(self.freed[block], moment)
            self.returned[block] = moment

    def _may_look_at(self, blocks: int) -> bool:
        self.work -= blocks
        return self.work >= 0


def _home(stream: int, pool: int) -> int:
    """All expandable memory of a stream and pool: no two of its address ranges touch."""
    return -1 - (stream * 65536 + pool)
