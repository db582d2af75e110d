"""The line of the user's own program that something happened at."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType

OURS = str(Path(__file__).parent.parent)
"""The folder of vramscope itself."""
LIBRARIES = (
    "<frozen",
    *(sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")),
    OURS,
)
"""How the files of Python, of installed packages and of vramscope begin."""


@dataclass(frozen=True, slots=True)
class Line:
    """``train.py:41 in main`` and the text of that line."""

    where: str
    text: str | None


@cache
def is_foreign(filename: str) -> bool:
    """Whether a file belongs to a library, to Python or to the recorder rather than to the program."""
    return filename.startswith(LIBRARIES) or "-packages" in filename


def within_libraries(filename: str) -> str:
    """A library's file from the folder on that it is installed in: ``torch/nn/functional.py``."""
    for folder in sorted(filter(None, LIBRARIES), key=len, reverse=True):
        if filename.startswith(folder + os.sep):
            return filename[len(folder) + 1 :]
    return filename.rpartition("-packages" + os.sep)[2]


def line_of(frame: FrameType | None) -> Line | None:
    """The innermost frame of the user's at or above `frame`; None if there is none."""
    while frame is not None and is_foreign(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else _line(frame, frame.f_lineno)


def current_line() -> Line | None:
    """The user's line that this thread is at; for a thread without one (autograd's) the main thread's."""
    here = line_of(sys._getframe(1))
    if here is None:
        here = line_of(sys._current_frames().get(threading.main_thread().ident or 0))
    return here


def of_error(trace: TracebackType | None) -> str | None:
    """The user's innermost line of a traceback."""
    found = None
    while trace is not None:
        if not is_foreign(trace.tb_frame.f_code.co_filename):
            found = _line(trace.tb_frame, trace.tb_lineno).where
        trace = trace.tb_next
    return found


def _line(frame: FrameType, number: int) -> Line:
    code = frame.f_code
    text = linecache.getline(code.co_filename, number).strip() or None
    return Line(f"{shown(code.co_filename)}:{number} in {code.co_name}", text)


def shown(filename: str) -> str:
    """A path below the working folder relative to it, others by their name alone."""
    relative = os.path.relpath(filename)
    return Path(filename).name if relative.startswith("..") else relative
