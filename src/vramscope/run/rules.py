"""What the CUDA caching allocator makes of a request: how it rounds it, and when it splits a block.

Written from the behaviour of c10/cuda/CUDACachingAllocator.cpp (`round_size`, `should_split`); the
constants are those of c10/core/AllocatorConfig.h, which a test holds against the installed header."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vramscope.run.trace import Column

MIN_BLOCK = 512
"""kMinBlockSize: sizes are multiples of it, and a rest of that size is worth a block in the small pool."""
SMALL_SIZE = 1 << 20
"""kSmallSize: the largest block of the small pool, and what a rest in the large pool has to exceed."""
SMALL_BUFFER = 2 << 20
"""kSmallBuffer: the size of the small pool's segments."""
_BUCKETS = 16
"""Intervals between powers of two that roundup_power2_divisions tells apart, from 1 MiB to 64 GiB."""
NEVER = 1 << 62
"""More than any block."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that decide on sizes."""

    max_split_bytes: int | None = None
    """Blocks for requests from here on are never split; None: all may be."""
    divisions: tuple[int, ...] = (0,) * _BUCKETS
    """Into how many parts each interval between powers of two is divided; 0 and 1: not at all."""


def rules_of(settings: Mapping[str, Any]) -> Rules:
    """From `allocator_settings` as torch's snapshots have them; what is missing or nonsense is the default."""
    limit = settings.get("max_split_size")
    whole = isinstance(limit, int) and 0 < limit < NEVER
    return Rules(limit if whole else None, _divisions(settings.get("roundup_power2_divisions")))


def rounded_sizes(requested: Column, rules: Rules) -> Column:
    """int64, the size of block that each request is for."""
    sizes = np.asarray(requested, np.int64)
    plain = np.maximum((sizes + (MIN_BLOCK - 1)) // MIN_BLOCK * MIN_BLOCK, MIN_BLOCK)
    if not any(each > 1 for each in rules.divisions):
        return plain
    power = np.floor(np.log2(np.maximum(sizes, 1).astype(np.longdouble))).astype(np.int64)
    parts = np.array(rules.divisions, np.int64)[np.clip(power - 20, 0, _BUCKETS - 1)]
    divided = (parts > 1) & (sizes > MIN_BLOCK * parts)
    floor = np.int64(1) << power
    step = np.maximum(floor >> np.floor(np.log2(np.maximum(parts, 1))).astype(np.int64), 1)
    up = np.where(sizes == floor, sizes, (sizes + step - 1) // step * step)
    return np.where(divided, up, plain)


def least_rests(sizes: Column, rules: Rules) -> Column:
    """int64, how much must be left over for a block of such a size to be cut off a larger one.

    Of segments from cudaMalloc; in expandable ones any rest of MIN_BLOCK is."""
    least = np.where(sizes <= SMALL_SIZE, MIN_BLOCK, SMALL_SIZE + 1)
    if rules.max_split_bytes is not None:
        least = np.where((sizes > SMALL_SIZE) & (sizes >= rules.max_split_bytes), NEVER, least)
    return least.astype(np.int64)


def _divisions(told: object) -> tuple[int, ...]:
    """Snapshots name each interval by its lower end in MiB: {"1": 0, "2": 4, …, "32768": 0}."""
    table = told if isinstance(told, Mapping) else {}
    found = (table.get(str(1 << index), 0) for index in range(_BUCKETS))
    return tuple(each if isinstance(each, int) and 0 <= each < 1 << 20 else 0 for each in found)
