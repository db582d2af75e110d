"""Python stacks as numbers: each frame and each stack is journalled once."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

from vramscope.recording import journal, where


class Stacks:
    """Numbers of frames and of stacks, innermost frame first; stack 0 is the empty one."""

    def __init__(self) -> None:
        self._stacks: dict[tuple[int, ...], int] = {(): 0}
        self._frames: dict[tuple[str, int, str], int] = {}
        self._by_ids: dict[tuple[int, ...], int] = {}

    def begin(self) -> None:
        """A new snapshot: the objects of the last one are gone, and their addresses come back as others."""
        self._by_ids.clear()

    def of_entry(self, frames: Sequence[dict[str, Any]]) -> int:
        """The number of a stack as a snapshot has it; within one snapshot, a frame is one object."""
        key = tuple(map(id, frames))
        number = self._by_ids.get(key)
        if number is None:
            number = self._by_ids[key] = self._number(
                self._frame(each["filename"], each["line"], each["name"]) for each in frames
            )
        return number

    def of_frame(self, frame: FrameType | None) -> int:
        """The number of the stack that a thread is at."""
        found = []
        while frame is not None:
            code = frame.f_code
            found.append(self._frame(code.co_filename, frame.f_lineno, code.co_name))
            frame = frame.f_back
        return self._number(found)

    def _number(self, frames: Iterable[int]) -> int:
        stack = tuple(frame for frame in frames if frame >= 0)
        number = self._stacks.get(stack)
        if number is None:
            number = self._stacks[stack] = len(self._stacks)
            journal.write("stack", number=number, frames=stack)
        return number

    def _frame(self, file: str, line: int, function: str) -> int:
        """A frame's number; -1 for one of the recorder's own, which no stack keeps."""
        number = self._frames.get((file, line, function))
        if number is None:
            number = -1 if file.startswith(where.OURS) else len(self._frames)
            self._frames[(file, line, function)] = number
            if number >= 0:
                self._write(number, file, line, function)
        return number

    def _write(self, number: int, file: str, line: int, function: str) -> None:
        user = not where.is_foreign(file)
        text = linecache.getline(file, line).strip()[:200] if user else ""
        shown = file if user else where.within_libraries(file)
        journal.write("frame", number=number, file=shown, line=line, function=function, user=user, text=text)
