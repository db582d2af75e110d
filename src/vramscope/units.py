"""The only place where a byte becomes text, and text becomes bytes.

GiB = 1024³ bytes and GB = 1000³ bytes; what torch, nvidia-smi and this program
show as memory is binary."""

from __future__ import annotations

import re

from vramscope.errors import SizeError

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

_FACTORS = {
    "": 1,
    "b": 1,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "tib": TIB,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
_UNITS = (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB))
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([A-Za-z]*)\s*")


def parse_size(text: str) -> int:
    """The bytes that a text like ``12GiB``, ``11.76 GiB``, ``24GB`` or ``1048576`` names.

    Raises SizeError for anything else, and for sizes that are zero or beyond 2**60 bytes.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise SizeError(text)
    factor = _FACTORS.get(match[2].lower())
    if factor is None:
        raise SizeError(text, f"unknown unit {match[2]!r}")
    size = round(float(match[1]) * factor)
    if not 0 < size <= 1 << 60:
        raise SizeError(text, "it must be above zero and at most 1 EiB")
    return size


def format_bytes(size: int) -> str:
    """A size for people: three figures, with the largest unit that leaves at least 1 (``8.86 GiB``)."""
    for unit, factor in _UNITS:
        if abs(size) >= factor:
            return f"{_three_figures(size / factor)} {unit}"
    return f"{size} B"


def format_gib(size: int) -> str:
    """A size in GiB without its unit, for columns (``8.86``)."""
    return f"{size / GIB:.2f}"


def format_gb(size: int) -> str:
    """A size in GB (1000³ bytes) without its unit, for columns beside published figures (``9.51``)."""
    return f"{size / 10**9:,.2f}"


def format_mib(size: int) -> str:
    """A size in MiB without its unit, for columns (``482.5``)."""
    return f"{size / MIB:.1f}"


def unit_for(size: int) -> str:
    """The unit of a column whose largest figure this is: the largest one that leaves at least 1 of it."""
    return next((unit for unit, factor in _UNITS if abs(size) >= factor), "KiB")


def size_in(number: float, unit: str) -> int:
    """The bytes of so many KiB, MiB, GiB or TiB."""
    return round(number * dict(_UNITS)[unit])


def format_in(size: int, unit: str) -> str:
    """A size in KiB, MiB, GiB or TiB without the unit, for columns (``6,880.1``): GiB and TiB have two decimals."""
    return f"{size / dict(_UNITS)[unit]:,.{2 if unit in ('GiB', 'TiB') else 1}f}"


def format_change(size: int) -> str:
    """A difference, always with its sign (``+90.0 MiB``)."""
    return ("−" if size < 0 else "+") + format_bytes(abs(size))


def _three_figures(value: float) -> str:
    """Three significant figures below 1000, whole numbers above."""
    magnitude = abs(value)
    return f"{value:.2f}" if magnitude < 10 else f"{value:.1f}" if magnitude < 100 else f"{value:,.0f}"
