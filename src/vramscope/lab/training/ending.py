"""How a cell's process ended, as a sentence without a full stop."""

from __future__ import annotations

import re

from vramscope.planning.last_words import last_error, signal_name

_ASKED = re.compile(r"[Tt]ried to allocate ([\d.]+ ?\w+)")
_NO_MEMORY = re.compile(r"out of memory|DefaultCPUAllocator|can't allocate memory|MemoryError", re.IGNORECASE)
_LESS = "try a smaller --batch or --image"


def why_failed(status: int, output: str, device: str) -> str:
    """What went wrong in a process that ended with a status (negative: a signal) after it printed something."""
    error = last_error(output)
    if error and _NO_MEMORY.search(error):
        asked = _ASKED.search(error)
        return (
            f"out of memory on {device}" + (f" when it asked for {asked[1]}" if asked else "") + f"; {_LESS}"
        )
    if status < 0:
        name = signal_name(-status)
        hint = f"; is the host's memory short? {_LESS}" if name == "SIGKILL" else ""
        return f"its process was ended by {name}{hint}"
    return error or f"its process ended with status {status} and said nothing"
