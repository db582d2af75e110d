"""Columns as NumPy's files: the smallest type, the same values, and nothing but integers."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest

from vramscope.errors import RunError
from vramscope.run.arrays import pack, steps_of, sums_of, unpack


@pytest.mark.parametrize(
    ("values", "kind", "stored"),
    [
        ([], "<i8", "uint8"),
        ([0, 255], "<i8", "uint8"),
        ([256], "<i4", "uint16"),
        ([-1, 200], "<i8", "int16"),
        ([1 << 32], "<i8", "uint64"),
        ([(1 << 64) - 1], "<u8", "uint64"),
        ([-(1 << 63)], "<i8", "int64"),
        ([True, False], "|b1", "uint8"),
    ],
)
def test_there_and_back_in_the_smallest_type(values: list[int], kind: str, stored: str):
    column = np.array(values, kind)

    data = pack(column)

    assert np.load(io.BytesIO(data), allow_pickle=False).dtype == stored
    assert unpack(data, kind, "x").tolist() == column.tolist()
    assert unpack(data, kind, "x").dtype == np.dtype(kind)


def test_what_comes_back_may_be_written_to():
    unpack(pack(np.array([1, 2])), "<i8", "x")[0] = 3


def saved(values: object, **how: object) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(values), **how)
    return file.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff{",
        saved([1.5]),
        saved([[1, 2]]),
        saved(np.array([1], ">i4")),
        saved(["a"]),
        saved([{}], allow_pickle=True),
        saved([1, 2], version=(2, 0)),
        saved(np.array([1], np.int64)).replace(b"(1,)", b"(9999999999999,)"),
        saved(np.array([1], np.int64)).replace(b"False", b"exit()"),
    ],
)
def test_what_is_no_column_of_integers(data: bytes):
    with pytest.raises(RunError, match="its x is no column of integers: it was not written by vramscope"):
        unpack(data, "<i8", "x")


@pytest.mark.parametrize("change", [b"(4,)", b"(1,)", b"(0,)"])
def test_another_number_of_rows_than_it_says(change: bytes):
    data = pack(np.array([1, 2, 3])).replace(b"(3,)", change)

    with pytest.raises(RunError, match=re.escape("its x has 3 bytes for")):
        unpack(data, "<i8", "x")


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (256, "|u1", "its x holds a number outside 0 to 255"),
        (1 << 31, "<i4", "its x holds a number outside -2147483648 to 2147483647"),
        (-1, "<u8", "its x holds a number outside 0 to 18446744073709551615"),
        (2, "|b1", "its x holds a number outside 0 to 1"),
    ],
)
def test_a_number_that_the_column_cannot_hold(value: int, kind: str, message: str):
    with pytest.raises(RunError, match=message):
        unpack(pack(np.array([value])), kind, "x")


def test_steps_and_sums():
    column = np.array([-1, -1, 5, 7])

    assert steps_of(column).tolist() == [-1, 0, 6, 2]
    assert sums_of(steps_of(column)).tolist() == column.tolist()
    assert sums_of(np.array([1 << 62, 1 << 62])).tolist() == [1 << 62, -(1 << 63)]
