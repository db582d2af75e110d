"""Bytes of a file changed as accidents do: bits flipped, an end cut off, a piece moved."""

from __future__ import annotations

import random


def flipped(data: bytes, chance: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(chance.randint(1, 8) if found else 0):
        found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def moved(data: bytes, chance: random.Random) -> bytes:
    """A piece of the file at another place."""
    first, end, place = sorted(chance.randrange(len(data) + 1) for _ in range(3))
    return data[:first] + data[end:place] + data[first:end] + data[place:]
