"""Reads a pickle that may come from anyone: plain data or nothing.

A pickle is a program for a small machine.  Before Python's machine runs one, every instruction of it is
held against a list of harmless ones: those that make numbers of up to 64 bits, texts, None, booleans,
lists, dicts and tuples of numbers, of which a snapshot of torch consists.  Nothing that looks up a name,
calls something or sets an attribute is on the list, and what is on it takes time and memory in
proportion to the file: no length goes beyond the file's end, no memo is larger than the file, no tuple
holds another (their hash can take for ever) and no integer is large (they can be made to collide)."""

from __future__ import annotations

import gc
import io
import os
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vramscope.errors import RunError

LARGEST_BYTES = 8 << 30
"""A file beyond this is not read."""

_LONG = rb"|".join(rb"\x8a%s.{%d}" % (re.escape(bytes([length])), length) for length in range(9))
_NUMBER = rb"(?:K.|M..|J....|\x8a\x09.{8}\x00|" + _LONG + rb")"  # nine bytes: a uint64, an address
_TUPLE = rb"%s(?:\x85|%s(?:\x86|%s\x87))|\(%s*t" % ((_NUMBER,) * 4)
_PLAIN = rb"[N\x88\x89\x94}\])eusa]+|h.|j....|G.{8}"
_HARMLESS = re.compile(rb"(?:%s|%s|%s|\(){0,250}" % (_PLAIN, _TUPLE, _NUMBER), re.DOTALL)
"""A run of instructions whose size is fixed, and which need no look at what they say."""
_COUNTED = {0x8C: 1, 0x58: 4, 0x8D: 8}
"""Texts, by the bytes of their length: SHORT_BINUNICODE, BINUNICODE, BINUNICODE8."""
_PUTS = {0x71: 1, 0x72: 4}
"""BINPUT and LONG_BINPUT, by the bytes of their index."""
_PROTO, _FRAME, _STOP = 0x80, 0x95, 0x2E
_HINT = "give it a file of torch.cuda.memory._dump_snapshot"


def read_pickle(path: str | os.PathLike[str]) -> Any:
    """The plain data in a pickle file of protocol 2 to 5; RunError for any other file, and nothing of it ran."""
    name = os.fspath(path)
    try:
        if Path(path).stat().st_size > LARGEST_BYTES:
            raise RunError(
                f"{name} is larger than {LARGEST_BYTES >> 30} GiB: record a shorter history (max_entries)"
            )
        data = Path(path).read_bytes()
    except OSError as error:
        raise RunError(f"cannot read {name}: {error.strerror or error}") from error
    return unpickled(data, name)


def unpickled(data: bytes, name: str = "this") -> Any:
    """The plain data in a pickle; `name` is what errors call it."""
    if data.startswith(b"version https://git-lfs"):
        raise RunError(f"{name} is a pointer of Git LFS, not the file itself: `git lfs pull` fetches it")
    fault = _fault(data)
    if fault:
        raise RunError(f"{name} is no snapshot of torch, or is damaged: {fault}; {_HINT}")
    try:
        with uncollected():
            return _Plain(io.BytesIO(data)).load()
    except Exception as error:
        raise RunError(
            f"{name} is no snapshot of torch, or is damaged: {error or 'no pickle'}; {_HINT}"
        ) from error


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector: it would look at millions of new dicts again and again, all of them alive."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Plain(pickle.Unpickler):
    """Knows no name and no object from elsewhere, should the list of instructions ever have a hole."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it asks for something outside itself")


def _fault(data: bytes) -> str | None:
    """What in a pickle is not plain data; None if it may be run."""
    if len(data) < 2 or data[0] != _PROTO:
        return "it does not begin like a pickle"
    if not 2 <= data[1] <= pickle.HIGHEST_PROTOCOL:
        return f"it is of pickle's protocol {data[1]}"
    at, end, run = 2, len(data), _HARMLESS.match
    while at < end:
        found = run(data, at)
        assert found is not None
        if found.end() > at:
            at = found.end()
            continue
        code = data[at]
        if code == _STOP:
            return None
        if code in _COUNTED:
            size = _COUNTED[code]
            at += 1 + size + int.from_bytes(data[at + 1 : at + 1 + size], "little")
        elif code in _PUTS:
            size = _PUTS[code]
            if int.from_bytes(data[at + 1 : at + 1 + size], "little") > at:
                return f"at byte {at} it names more objects than it has"
            at += 1 + size
        elif code == _FRAME:
            at += 9
            if at + int.from_bytes(data[at - 8 : at], "little") > end:
                return "its end is missing"
        else:
            return f"at byte {at} it holds more than numbers, texts, lists and dicts"
    return "its end is missing"
