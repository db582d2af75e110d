"""Modules told at the depth at which a few rows say most."""

from __future__ import annotations

from collections.abc import Sequence

from vramscope.analysis.peak import Share


def grouped(shares: Sequence[Share], most: int) -> tuple[Share, ...]:
    """The shares of modules in no more than `most` rows, the largest first; their sums stay what they were.

    It begins with the outermost modules, and splits the largest row into what is below it for as long as
    there is room.  A row's figure is that of the module with all below it that has no row of its own."""
    rows = _below("", shares)
    while (split := _largest_split(rows, most)) is not None:
        rows = split
    found = [_together(path, group) for path, group in rows.items()]
    return tuple(sorted(found, key=lambda row: -row.size_bytes))


_Rows = dict[str, list[Share]]


def _largest_split(rows: _Rows, most: int) -> _Rows | None:
    """The rows with the largest of those that can be split as what is below it; None where none can."""
    for path in sorted(rows, key=lambda path: -_size(rows[path])):
        below = _below(path, rows[path])
        if list(below) != [path] and len(rows) - 1 + len(below) <= most:
            return {**{each: rows[each] for each in rows if each != path}, **below}
    return None


def _below(path: str, shares: Sequence[Share]) -> _Rows:
    """The shares by the next part of their paths; a module's own stays under its own path."""
    depth = path.count(".") + 1 if path else 0
    found: _Rows = {}
    for share in shares:
        found.setdefault(".".join(share.name.split(".")[: depth + 1]), []).append(share)
    return found


def _size(shares: Sequence[Share]) -> int:
    return sum(share.size_bytes for share in shares)


def _together(path: str, shares: Sequence[Share]) -> Share:
    return Share(path, _size(shares), sum(share.blocks for share in shares))
