"""The recorder's first steps in a process: before the program, before torch."""

from __future__ import annotations

import atexit
import os
import platform
import sys
from types import ModuleType

from vramscope.recording import ending, journal
from vramscope.recording.imports import after_import


def begin() -> None:
    """Starts recording if this process belongs to a virtual machine."""
    if not os.environ.get("VRAMSCOPE_JOURNAL"):
        return
    main = os.environ.pop("VRAMSCOPE_MAIN", None) is not None
    journal.write("process", argv=sys.orig_argv[1:], python=platform.python_version(), main=main)
    ending.watch(main)
    after_import("torch", _torch_is_here)


def _torch_is_here(torch: ModuleType) -> None:
    from vramscope.recording import memory

    memory.install(torch)
    atexit.register(memory.finish)
