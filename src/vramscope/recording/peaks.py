"""Peaks between two readings, without the program noticing that they were read.

Torch keeps one peak for each statistic, since the last reset.  To know the peak of every span the
recorder resets it at each boundary, and keeps what the program would have read: the program's own
calls (``max_memory_allocated()``, ``reset_peak_memory_stats()`` …) get that, to the byte.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import ModuleType
from typing import Any

Stats = dict[str, Any]


class Peaks:
    """The peaks of all devices of this process."""

    def __init__(self, torch: ModuleType, core: ctypes.CDLL | None) -> None:
        """`core` has the virtual card's books; None: a real one, of which NVML tells from outside."""
        self._cuda, self._c = torch.cuda, torch._C
        self._core = core
        if core is not None:
            for name in ("vs_peak_used_bytes", "vs_used_by_all_bytes", "vs_used_bytes"):
                getattr(core, name).restype = ctypes.c_uint64
        self._raw_stats = torch._C._cuda_memoryStats
        self._raw_reset = torch._C._cuda_resetPeakMemoryStats
        self._kept: dict[int, dict[tuple[str, ...], int]] = {}
        """Per device the program's peaks up to the last reset of ours."""
        self._span: dict[int, tuple[int, int]] = {}
        """Per device the allocated and reserved peaks that a reset of the program's cut off from this span."""
        self._retries_before: dict[int, int] = {}
        self._started = False

    def begin(self) -> None:
        """CUDA was started: from here on there are peaks, and the program's calls go through us."""
        self._started = True
        self._c._cuda_memoryStats = self._program_stats
        self._c._cuda_resetPeakMemoryStats = self._program_reset

    def take(self) -> list[dict[str, int]]:
        """The peaks of each used device since the last call."""
        if not self._started:
            return []
        return [found for device in range(self._cuda.device_count()) if (found := self._take(device))]

    def now(self, device: int) -> dict[str, int | None]:
        """What a device holds at this moment."""
        stats = self._raw_stats(device)
        return {
            "allocated_bytes": stats["allocated_bytes"]["all"]["current"],
            "reserved_bytes": stats["reserved_bytes"]["all"]["current"],
            "used_bytes": self._core.vs_used_by_all_bytes(device) if self._core else None,
            "capacity_bytes": self._cuda.get_device_properties(device).total_memory,
        }

    def _take(self, device: int) -> dict[str, int] | None:
        stats = self._raw_stats(device)
        used = self._used(device)
        if used == {} or (used is None and not stats["segment"]["all"]["allocated"]):
            return None
        allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
        before = self._span.pop(device, (0, 0))
        self._keep(device, stats)
        self._raw_reset(device)
        return {
            "device": device,
            "peak_allocated_bytes": max(allocated["peak"], before[0]),
            "peak_reserved_bytes": max(reserved["peak"], before[1]),
            "allocated_bytes": allocated["current"],
            "reserved_bytes": reserved["current"],
            **(used or {}),
            "retries": self._retries(device, stats),
        }

    def _used(self, device: int) -> dict[str, int] | None:
        """What the process held on a virtual card in all, at most and now; {} if it held nothing, None: not told."""
        if self._core is None:
            return None
        peak, now = self._core.vs_peak_used_bytes(device), self._core.vs_used_bytes(device)
        if not peak:
            return {}
        self._core.vs_reset_peak_used(device)
        return {"peak_used_bytes": peak, "used_bytes": now}

    def _retries(self, device: int, stats: Stats) -> int:
        """How often within the span the allocator had to give its cache back to find room."""
        before, now = self._retries_before.get(device, 0), int(stats["num_alloc_retries"])
        self._retries_before[device] = now
        return now - before

    def _keep(self, device: int, stats: Stats) -> None:
        kept = self._kept.setdefault(device, {})
        for key, values in _statistics(stats):
            if values["peak"] > kept.get(key, -1):
                kept[key] = values["peak"]

    def _program_stats(self, device: int) -> Stats:
        stats: Stats = self._raw_stats(device)
        kept = self._kept.get(device, {})
        for key, values in _statistics(stats):
            values["peak"] = max(values["peak"], kept.get(key, 0))
        return stats

    def _program_reset(self, device: int) -> None:
        stats = self._raw_stats(device)
        before = self._span.get(device, (0, 0))
        self._span[device] = (
            max(before[0], stats["allocated_bytes"]["all"]["peak"]),
            max(before[1], stats["reserved_bytes"]["all"]["peak"]),
        )
        self._kept.pop(device, None)
        self._raw_reset(device)


def _statistics(
    stats: Stats, place: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, int]]]:
    """Every statistic that has a peak, with the keys that lead to it: of each pool, of none, of a graph's."""
    for name, values in stats.items():
        if isinstance(values, dict):
            if "peak" in values:
                yield (*place, name), values
            else:
                yield from _statistics(values, (*place, name))
