"""The policy of this process, read once."""

from __future__ import annotations

from functools import cache

from vramscope.recording.values.policy import Policy, from_environment


@cache
def policy() -> Policy:
    """What this process assumes where nothing is known."""
    return from_environment()
