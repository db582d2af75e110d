"""Snapshots of torch's allocator: those that a program on the virtual card writes, and hand-made ones."""

from __future__ import annotations

from typing import Any

MIB = 1 << 20
BASE = 0x7F00_0000_0000


def unrecorded(code: str) -> str:
    """The code in a process that vramscope's own recorder is not in: torch has but one history."""
    return (
        "import os, sys\n"
        'os.environ.pop("VRAMSCOPE_JOURNAL")\n'
        f'os.execv(sys.executable, [sys.executable, "-c", {code!r}])\n'
    )


def frame(filename: str, line: int, name: str) -> dict[str, Any]:
    return {"name": name, "filename": filename, "line": line}


def event(action: str, addr: int, size: int, time_us: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "action": action,
        "addr": addr,
        "size": size,
        "stream": 0,
        "time_us": time_us,
        "frames": [],
        **more,
    }


def freed(addr: int, size: int, time_us: int = 0, **more: Any) -> list[dict[str, Any]]:
    """Both events of a free."""
    return [event(action, addr, size, time_us, **more) for action in ("free_requested", "free_completed")]


def block(address: int, size: int, requested: int | None = None, **more: Any) -> dict[str, Any]:
    asked = size if requested is None else requested
    told = {
        "address": address,
        "size": size,
        "requested_size": asked,
        "state": "active_allocated",
        "frames": [],
    }
    return {**told, **more}


def segment(address: int, size: int, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    told = {
        "device": 0,
        "address": address,
        "total_size": size,
        "stream": 0,
        "segment_type": "small" if size == 2 * MIB else "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": list(blocks),
    }
    return {**told, **more}


def snapshot(
    *events: dict[str, Any], segments: list[dict[str, Any]] | None = None, **more: Any
) -> dict[str, Any]:
    return {"segments": segments or [], "device_traces": [list(events)], "allocator_settings": {}, **more}
