"""The virtual machine as its owner sees it: two anonymous files that end with this process.

*machine* is the state that every process on the card shares (native/core/machine.h), *journal*
is where they append what happened.  Both are reached through /proc by the children, so nothing
lies on a disk and nothing is left behind, also after ``kill -9``.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from types import TracebackType

from vramscope.errors import PlatformError
from vramscope.run.journal import Journal, read_journal

# The layout of struct vs_machine; a test compares it with the header.
MAGIC = 0x31454D4152565356
MAX_DEVICES = 64
SLOTS = 256
_HEAD = struct.Struct(f"<Q{MAX_DEVICES}Q")
_SLOT = struct.Struct(f"<ii{MAX_DEVICES}Q")
MACHINE_BYTES = _HEAD.size + SLOTS * _SLOT.size


class Machine:
    """Owns the two files; use it as a context manager."""

    def __init__(self) -> None:
        if not hasattr(os, "memfd_create"):
            raise PlatformError(
                "this system has no memfd_create (Linux 3.17 or later); a virtual card cannot be made here"
            )
        self._state = os.memfd_create("vramscope-machine", os.MFD_CLOEXEC)
        self._journal = os.memfd_create("vramscope-journal", os.MFD_CLOEXEC)
        os.truncate(self._state, MACHINE_BYTES)
        os.pwrite(self._state, struct.pack("<Q", MAGIC), 0)

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._state)
        os.close(self._journal)

    def environment(self) -> Mapping[str, str]:
        """The variables through which children find the two files."""
        here = f"/proc/{os.getpid()}/fd"
        return {"VRAMSCOPE_MACHINE": f"{here}/{self._state}", "VRAMSCOPE_JOURNAL": f"{here}/{self._journal}"}

    def peak_used_bytes(self, devices: int) -> list[int]:
        """Per device, the most that all processes together held, contexts included."""
        values = _HEAD.unpack(os.pread(self._state, _HEAD.size, 0))
        return list(values[1 : 1 + devices])

    def journal(self) -> Journal:
        """Everything written so far; what a killed process left torn is counted, not lost silently."""
        size = os.fstat(self._journal).st_size
        return read_journal(os.pread(self._journal, size, 0))
