"""The journal of a run: one JSON object a line, as the processes on the virtual card wrote them.

A process may be killed while it writes, and a program may write nonsense into the
file, so nothing here raises on content: what is no entry is counted and left out.
An entry is a mapping with an int ``pid`` and a text ``kind``; the fields of each
kind are read with the typed getters below, which answer None for a field that is
missing or of another type.  Unknown is None, never 0."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Journal:
    """The entries in the order they were written, and what of the file was none."""

    entries: tuple[Entry, ...] = ()
    damaged: int = 0
    """Lines that are no entry."""
    torn: bool = False
    """The last line has no end: its process died while it wrote."""

    def of(self, kind: str) -> Iterator[Entry]:
        """The entries of one kind."""
        return (entry for entry in self.entries if entry["kind"] == kind)


def read_journal(data: bytes) -> Journal:
    """The journal in a file's bytes; never raises, whatever they are."""
    *whole, last = data.split(b"\n")
    return _journal(map(_parsed, filter(None, whole)), _parsed(last) if last else None, bool(last))


def journal_of(objects: Iterable[object]) -> Journal:
    """The journal of objects that are already parsed; what is no entry is counted."""
    return _journal(objects, None, False)


def write_journal(journal: Journal) -> bytes:
    """The entries as JSON lines; read_journal gives them back."""
    lines = (json.dumps(dict(entry), ensure_ascii=True, separators=(",", ":")) for entry in journal.entries)
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def integer(entry: Entry, key: str) -> int | None:
    """A field that is a whole number of at least zero (bytes, counts, steps, devices)."""
    value = entry.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def text(entry: Entry, key: str) -> str | None:
    """A field that is a text with something in it."""
    value = entry.get(key)
    return value if isinstance(value, str) and value else None


def objects(entry: Entry, key: str) -> list[Entry]:
    """A field that is a list of objects; what in it is none is left out."""
    value = entry.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _journal(objects: Iterable[object], last: object, unfinished: bool) -> Journal:
    kept: list[Entry] = []
    damaged = 0
    for item in objects:
        if _is_entry(item):
            kept.append(item)  # type: ignore[arg-type]
        else:
            damaged += 1
    if _is_entry(last):  # whole but for its line end: nothing of it is lost
        return Journal((*kept, last), damaged)  # type: ignore[arg-type]
    return Journal(tuple(kept), damaged, unfinished)


def _is_entry(item: object) -> bool:
    return isinstance(item, dict) and integer(item, "pid") is not None and text(item, "kind") is not None


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):  # ValueError: no JSON, no UTF-8, or a number of too many digits
        return None
