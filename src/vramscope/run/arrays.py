"""A column as the bytes of a ``.npy`` file, in the smallest integer type that holds it, and back.

The header is read by a pattern that matches what NumPy writes for a column of integers and nothing else:
no evaluation, no objects, no other shape, and never more rows than there are bytes."""

from __future__ import annotations

import io
import re

import numpy as np

from vramscope.errors import RunError
from vramscope.run.trace import Column

_TYPES = tuple(map(np.dtype, ("|u1", "<u2", "<u4", "<u8", "|i1", "<i2", "<i4", "<i8")))
"""Unsigned ones first: a column has a signed type only where a value is negative."""
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '(\|[ui]1|<[ui][248])', 'fortran_order': False, 'shape': \(([0-9]{1,12}),\), \} *\n"
)


def pack(column: Column) -> bytes:
    """The column's values as a file of NumPy's; booleans as 0 and 1."""
    values = column.astype("|u1") if column.dtype == np.bool_ else column
    file = io.BytesIO()
    np.lib.format.write_array(file, values.astype(_smallest(values)), version=(1, 0), allow_pickle=False)
    return file.getvalue()


def unpack(data: bytes, kind: str, what: str) -> Column:
    """The column of a type that `pack` made these bytes of; RunError, naming it as `what`, for others."""
    stored = _stored(data, what)
    target = np.dtype(kind)
    low, high = (0, 1) if target == np.bool_ else (np.iinfo(target).min, np.iinfo(target).max)
    if len(stored) and not (low <= int(stored.min()) and int(stored.max()) <= high):
        raise RunError(f"its {what} holds a number outside {low} to {high}: the run is damaged")
    return stored.astype(target)


def steps_of(column: Column) -> Column:
    """The first value, and by how much each next one is higher: small numbers that compress well."""
    found: Column = np.diff(column, prepend=column.dtype.type(0))
    return found


def sums_of(column: Column) -> Column:
    """The column that `steps_of` made this of; what overflows wraps, for the checks of values to find."""
    found: Column = np.cumsum(column, dtype=column.dtype)
    return found


def _smallest(values: Column) -> np.dtype[np.generic]:
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    fitting = (each for each in _TYPES if np.iinfo(each).min <= low and high <= np.iinfo(each).max)
    return next(fitting)


def _stored(data: bytes, what: str) -> Column:
    length = int.from_bytes(data[8:10], "little")
    header = _HEADER.fullmatch(data[10 : 10 + length])
    if data[:8] != _MAGIC or header is None:
        raise RunError(f"its {what} is no column of integers: it was not written by vramscope")
    kind, rows, body = np.dtype(header[1].decode()), int(header[2]), memoryview(data)[10 + length :]
    if len(body) != rows * kind.itemsize:
        raise RunError(f"its {what} has {len(body)} bytes for {rows} rows of {kind.name}: the run is damaged")
    return np.frombuffer(body, kind)
