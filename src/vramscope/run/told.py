"""What a process told of its program: modules, names, stacks, optimizers, and what its labels mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from vramscope.run.journal import Entry, integer, text
from vramscope.run.trace import Column, Frame, Module, Optimizer, Tables


@dataclass(frozen=True, slots=True)
class Told:
    """The tables, and what only the assembly needs."""

    tables: Tables
    contexts: Column
    """int64[contexts, 3]: span, module and flags of each label; -1 where it tells no span."""
    casts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Per module the bytes of half-precision copies of its own fp32 parameters."""
    settings: dict[str, Any] = field(default_factory=dict)


def told_by(entries: Sequence[Entry]) -> Told:
    """Sorts the entries; a number that is missing from a table stands for its first, empty row."""
    kinds: dict[str, dict[int, Entry]] = {"module": {}, "name": {}, "frame": {}, "stack": {}}
    contexts: dict[int, str] = {}
    optimizers, settings = [], {}
    for entry in entries:
        kind, number = entry["kind"], integer(entry, "number")
        if kind in kinds and number is not None:
            kinds[kind][number] = entry
        elif kind == "contexts" and isinstance(entry.get("contexts"), dict):
            contexts |= {int(key): str(value) for key, value in entry["contexts"].items() if key.isdigit()}
        elif kind == "optimizer":
            optimizers.append(_optimizer(entry))
        elif kind == "settings" and isinstance(entry.get("settings"), dict):
            settings = dict(entry["settings"])
    modules = _dense(kinds["module"], _module, Module(""))
    frames = _frames(kinds["frame"])  # with gaps: the recorder's own have numbers too, and are not told
    tables = Tables(
        modules=modules,
        names=_dense(kinds["name"], lambda entry: text(entry, "name") or "", ""),
        frames=frames,
        stacks=_stacks(kinds["stack"], len(frames)),
        optimizers=tuple(optimizers),
    )
    casts = {
        number: tuple(size for size in entry.get("casts", ()) if isinstance(size, int))
        for number, entry in kinds["module"].items()
    }
    return Told(tables, _contexts(contexts, len(modules)), casts, settings)


def _dense(known: dict[int, Entry], make: Any, empty: Any) -> tuple[Any, ...]:
    last = max(known, default=0)
    if last > len(known) + 1000:  # numbers from nowhere
        known, last = {}, 0
    return tuple(make(known[number]) if number in known else empty for number in range(last + 1))


def _module(entry: Entry) -> Module:
    sizes = ("parameters", "parameter_bytes", "trainable", "trainable_bytes", "buffer_bytes")
    notes = entry.get("notes")
    return Module(
        text(entry, "path") or "",
        text(entry, "class") or "",
        **{size: integer(entry, size) or 0 for size in sizes},
        notes=tuple(map(str, notes)) if isinstance(notes, list) else (),
    )


def _optimizer(entry: Entry) -> Optimizer:
    given = entry.get("settings")
    settings = dict(given) if isinstance(given, dict) else {}
    foreach, fused = (settings.pop(key, None) for key in ("foreach", "fused"))
    return Optimizer(
        text(entry, "class") or "Optimizer", integer(entry, "parameters") or 0, foreach, fused, settings
    )


def _frames(known: dict[int, Entry]) -> tuple[Frame, ...]:
    return _dense(known, _frame, Frame("?", 0, "?")) if known else ()


def _frame(entry: Entry) -> Frame:
    file = text(entry, "file") or "?"
    if file.startswith("/"):  # the program's own, but not below its folder: no more of the path than it takes
        file = "/".join(PurePosixPath(file).parts[-2:])
    line, function = integer(entry, "line") or 0, text(entry, "function") or "?"
    return Frame(file, line, function, entry.get("user") is True, text(entry, "text") or "")


def _stacks(known: dict[int, Entry], frames: int) -> tuple[tuple[int, ...], ...]:
    def made(entry: Entry) -> tuple[int, ...]:
        given = entry.get("frames")
        numbers = given if isinstance(given, (list, tuple)) else ()
        return tuple(each for each in numbers if isinstance(each, int) and 0 <= each < frames)

    return _dense(known, made, ())


def _contexts(known: dict[int, str], modules: int) -> Column:
    found = np.zeros((max(known, default=0) + 1, 3), np.int64)
    found[:, 0] = -1
    for number, label in known.items():
        parts = label.split(":")
        if len(parts) == 3 and all(part.isdigit() for part in parts):
            span, module, flags = map(int, parts)
            found[number] = span, module if module < modules else 0, flags & 0xFF
    return found
