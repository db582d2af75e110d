"""Appends lines to the run's journal: one JSON object, one write, so that a kill loses none."""

from __future__ import annotations

import json
import os

_descriptor: int | None = None
_owner = 0


def write(kind: str, **fields: object) -> None:
    """Appends ``{"pid": …, "kind": kind, **fields}``; does nothing outside a virtual machine."""
    descriptor = _open()
    if descriptor is None:
        return
    line = json.dumps({"pid": os.getpid(), "kind": kind, **fields}, default=str) + "\n"
    try:
        os.write(descriptor, line.encode())
    except OSError:  # the program closed our descriptor, or the vramscope process is gone: its run goes on
        _forget()


def _open() -> int | None:
    global _descriptor, _owner
    if _owner != os.getpid():  # a fork: a descriptor of its own, as the program may close inherited ones
        _owner, _descriptor = os.getpid(), None
        path = os.environ.get("VRAMSCOPE_JOURNAL")
        if path:
            try:
                _descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            except OSError:
                _descriptor = None
    return _descriptor


def _forget() -> None:
    global _descriptor
    _descriptor = None
