"""Which blocks were named by the recorder or used by a library, from what was noted at the time."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vramscope.run.told import Told
from vramscope.run.trace import Column

LETTERS = {"p": "parameter", "b": "buffer", "g": "gradient", "o": "optimizer_state", "i": "input"}
"""The first letter of an annotation (`recording.owners`), and the category that it stands for."""
_LIVES = 8
"""So many blocks may have lain at one address within the time that the clocks may be apart."""
_CLOCKS_APART_US = 50
"""The library's clock and the allocator's agree to a few microseconds."""


@dataclass(frozen=True, slots=True)
class Note:
    """The block that began at an address at a moment was annotated."""

    moment: int
    address: int
    label: str


@dataclass(frozen=True, slots=True)
class Use:
    """A library was given an address at a time, as "workspace", "communication" or "input"."""

    kind: str
    address: int
    time_us: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Claims:
    """Per block what it was claimed as, "" where nobody did, and the number of its name."""

    kind: list[str]
    name: Column


def claims_of(
    blocks: Mapping[str, Column], notes: Sequence[Note], uses: Sequence[Use], times: Column, told: Told
) -> Claims:
    """A later annotation of a block overrules an earlier one, and any annotation overrules a use."""
    kind = [""] * len(blocks["born"])
    name = np.zeros(len(kind), np.int32)
    for place, use in _used(blocks, uses, times):
        kind[place] = use.kind
    rows_at = _by_address(blocks)
    for note in notes:
        row = _row(rows_at, blocks, note)
        letter, _, number = note.label.partition(":")
        if row is not None and letter in LETTERS and (letter != "i" or kind[row] in ("", "input")):
            kind[row] = LETTERS[letter]
            name[row] = int(number) if number.isdigit() and int(number) < len(told.tables.names) else 0
    return Claims(kind, name)


def _by_address(blocks: Mapping[str, Column]) -> dict[int, tuple[list[int], list[int]]]:
    """Per address the moments at which a block was born there, and the blocks' rows."""
    found: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    order = np.argsort(blocks["born"], kind="stable")
    for row, address, born in zip(
        order.tolist(), blocks["address"][order].tolist(), blocks["born"][order].tolist(), strict=True
    ):
        at, rows = found[address]
        at.append(born)
        rows.append(row)
    return found


def _row(
    rows_at: Mapping[int, tuple[list[int], list[int]]], blocks: Mapping[str, Column], note: Note
) -> int | None:
    if note.address not in rows_at:
        return None
    born, rows = rows_at[note.address]
    place = bisect_right(born, note.moment)
    if not place or blocks["freed"][rows[place - 1]] <= note.moment:
        return None
    return rows[place - 1]


def _used(blocks: Mapping[str, Column], uses: Sequence[Use], times: Column) -> list[tuple[int, Use]]:
    """The block that held the address at the time; see `_best`."""
    if not uses or not len(times):
        return []
    born_us = times[np.maximum(blocks["born"], 0)]
    freed = blocks["freed"]
    freed_us = np.where(freed < len(times), times[np.minimum(freed, len(times) - 1)], np.iinfo(np.int64).max)
    by_start = np.argsort(blocks["address"], kind="stable")
    starts = blocks["address"][by_start]
    ends = starts + blocks["size_bytes"][by_start].astype(np.uint64)
    asked = blocks["requested_bytes"]
    found = []
    for address, group in _grouped(uses).items():
        here = by_start[(starts <= address) & (ends > address)]
        here = here[np.argsort(born_us[here], kind="stable")]
        lives = born_us[here], freed_us[here], asked[here]
        for use in group:
            place = _best(use, *lives)
            if place is not None:
                found.append((int(here[place]), use))
    return found


def _best(use: Use, born_us: Column, freed_us: Column, asked: Column) -> int | None:
    """Of the blocks that lay at an address, in order of birth, the one that was used.

    One life after another ends and begins there within microseconds, less than the clocks agree to.  So the
    size decides first: a work space is as large as what was asked for it, anything else is no larger."""
    last = int(np.searchsorted(born_us, use.time_us + _CLOCKS_APART_US, "right"))
    best, least = None, _CLOCKS_APART_US + 1
    for place in range(last - 1, max(last - _LIVES, 0) - 1, -1):
        fits = asked[place] == use.bytes if use.kind == "workspace" else asked[place] >= use.bytes
        apart = max(int(born_us[place]) - use.time_us, use.time_us - int(freed_us[place]), 0)
        if fits and apart < least:
            best, least = place, apart
    return best


def _grouped(uses: Sequence[Use]) -> dict[int, list[Use]]:
    found: dict[int, list[Use]] = defaultdict(list)
    for use in uses:
        found[use.address].append(use)
    return found
