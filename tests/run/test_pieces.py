"""Mapped ranges against a list of single megabytes: what is there, and since when."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vramscope.run.pieces import Pieces

BASE = 1 << 40
_STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 15), st.integers(0, 6)), max_size=40)


@settings(max_examples=300, deadline=None)
@given(_STEPS)
def test_every_unit_lives_as_long_as_it_is_mapped(steps: list[tuple[bool, int, int]]):
    pieces = Pieces(len(steps))
    there: dict[int, int] = {}
    lives = []
    for moment, (maps, first, size) in enumerate(steps):
        units = range(first, first + size)
        if maps:
            possible = size > 0 and not there.keys() & set(units)
            assert pieces.map(moment, BASE + first, size, 0, 0) == possible
            there |= dict.fromkeys(units, moment) if possible else {}
        else:
            gone = there.keys() & set(units)
            assert pieces.unmap(moment, BASE + first, size) == bool(gone)
            lives += [(unit, there.pop(unit), moment) for unit in gone]

    lives += [(unit, born, len(steps)) for unit, born in there.items()]
    rows = zip(pieces.addresses, pieces.sizes, pieces.born, pieces.gone, strict=True)
    found = [(at - BASE + unit, born, gone) for at, size, born, gone in rows for unit in range(size)]
    assert sorted(found) == sorted(lives)
    for unit in range(25):
        row = pieces.mapped_at(BASE + unit)
        assert (row >= 0) == (unit in there)
        assert row < 0 or pieces.addresses[row] <= BASE + unit < pieces.addresses[row] + pieces.sizes[row]
    assert sum(pieces.sizes[row] for row in pieces.mapped_rows()) == len(there)


def test_the_part_that_an_address_lies_in():
    pieces = Pieces(9)
    pieces.map(0, BASE, 10, 0, 0)
    pieces.map(0, BASE + 20, 5, 0, 0)
    pieces.unmap(1, BASE + 4, 2)
    pieces.unmap(2, BASE + 8, 2)

    rows = np.zeros(4, np.int32)
    address = np.array([BASE, BASE + 5, BASE + 7, BASE + 9], np.uint64)
    parts = pieces.parts_with(rows, address).tolist()

    assert [pieces.addresses[row] - BASE for row in parts] == [0, 4, 6, 8]
    assert [pieces.gone[row] for row in parts] == [9, 1, 9, 2]
    assert pieces.parts_with(np.array([1], np.int32), np.array([BASE + 22], np.uint64)).tolist() == [1]
