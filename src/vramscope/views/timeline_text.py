"""Memory over the run as a plot of characters: what is allocated, by kind, below what is reserved.

The kinds are shades, so that they are told apart without colours too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from vramscope.analysis.timeline import Band, Timeline
from vramscope.run.categories import (
    ACTIVATION,
    BUFFER,
    CATEGORIES,
    GRADIENT,
    INPUT,
    OPTIMIZER_STATE,
    PARAMETER,
    plural,
)
from vramscope.run.trace import Column
from vramscope.units import format_bytes, format_in, size_in
from vramscope.views.figures import in_phase, phase, unit_of
from vramscope.views.paragraphs import GLUE, INDENT, TextOptions, finished, wrapped
from vramscope.views.tables import printable

_ROWS = 14
_MOST_TICKS = 5


class _Kind(NamedTuple):
    """Categories that have one shade."""

    shades: tuple[str, str]
    """The character, and the one for a terminal that knows ASCII only."""
    colour: str
    categories: tuple[str, ...]


_HELD = _Kind(("█", "#"), "green", (PARAMETER, BUFFER, OPTIMIZER_STATE))
_GRADIENTS = _Kind(("▓", "+"), "magenta", (GRADIENT,))
_KEPT = _Kind(("▒", "="), "cyan", (ACTIVATION, INPUT))
_REST = tuple(set(CATEGORIES) - {*_HELD.categories, *_GRADIENTS.categories, *_KEPT.categories})
_KINDS = (_HELD, _GRADIENTS, _KEPT, _Kind(("░", ":"), "yellow", _REST))
"""From the bottom up."""
_NAMED = 3
"""So many categories of a shade are named."""
_RESERVED, _CARD = ("·", "."), ("─", "-")
_SHORT = {
    "forward": "fwd",
    "backward": "bwd",
    "optimizer_step": "opt",
    "zero_grad": "zero",
    "evaluation": "eval",
}


@dataclass(frozen=True, slots=True)
class _Plot:
    """The curves, a value for each column of characters."""

    width: int
    edges: Column
    """The first moment of each column, and the one after the last."""
    levels: Column
    """[kinds, width] bytes, how high each kind reaches upon those below it, where allocated is highest."""
    reserved: Column
    peak: int
    """The column of the allocated peak."""
    top: int
    """Bytes at the upper edge."""
    limit: int | None
    """Where the card ends, if that is within the plot."""


def timeline_text(found: Timeline, layout: TextOptions) -> Text:
    """A sentence, the plot, the phases, steps and marks below it, and what its shades are."""
    if found.peak_moment is None:
        return finished(wrapped("", "no events were recorded, so there is nothing to plot", layout), layout)
    top = _top(found)
    unit = unit_of((top,))
    ticks = _ticks(top, unit)
    margin = max(map(len, (unit, *ticks.values())))
    plot = _plot(found, top, max(10, layout.width - len(INDENT) - margin - 3))
    left = " " * (len(INDENT) + margin + 2)
    lines = [*wrapped("", _headline(found), layout, style="bold"), Text()]
    pointer = " " * plot.peak + ("v" if layout.ascii_only else "▾")
    lines.append(Text.assemble((f"{INDENT}{unit:>{margin}}  ", "dim"), (pointer, "bold")))
    lines += [_row(plot, row, ticks.get(row, ""), margin, layout) for row in reversed(range(_ROWS))]
    lines.append(Text(f"{INDENT}{'0':>{margin}} " + _axis(found, plot, layout), "dim"))
    lines += [Text((left + row).rstrip(), "dim") for row in _below(found, plot, layout) if row.strip()]
    return finished([*lines, Text(), *_legend(found, plot, layout)], layout)


def _headline(found: Timeline) -> str:
    assert found.peak_moment is not None
    highest = int(found.allocated.max())
    told = [
        f"allocated peak {format_bytes(highest)} {in_phase(found.peak_phase, found.peak_step)}".rstrip(),
        f"reserved reaches {format_bytes(int(found.reserved.max()))}",
    ]
    if (limit := found.for_the_allocator_bytes) is not None:
        told.append(f"the card leaves it {format_bytes(limit)}")
    return "; ".join(told)


def _top(found: Timeline) -> int:
    """The upper edge: what was reserved, or the end of the card where that is not too far above it."""
    highest = int(max(found.reserved.max(), found.allocated.max(), 1))
    limit = found.for_the_allocator_bytes
    return limit if limit is not None and highest < limit <= 2 * highest else highest


def _ticks(top: int, unit: str) -> dict[int, str]:
    """Rows and their labels, of round values."""
    steps = (size_in(each * 10**power, unit) for power in count(-2) for each in (1, 2, 2.5, 5))
    step = next(each for each in steps if top <= _MOST_TICKS * each)
    values = range(step, top + 1, step)
    return {min(_ROWS - 1, value * _ROWS // top): format_in(value, unit) for value in values}


def _plot(found: Timeline, top: int, width: int) -> _Plot:
    edges = np.linspace(0, found.total_moments, width + 1)
    chosen = _samples(found, edges)
    limit = found.for_the_allocator_bytes
    return _Plot(
        width=width,
        edges=edges,
        levels=np.cumsum([_bytes_of(found, kind)[chosen] for kind in _KINDS], axis=0),
        reserved=np.array([found.reserved[first:end].max() for first, end in _ranges(found, edges)]),
        peak=_column(edges, found.peak_moment or 0),
        top=top,
        limit=limit if limit is not None and limit <= top else None,
    )


def _ranges(found: Timeline, edges: Column) -> list[tuple[int, int]]:
    """For each column of characters the points in it; where there are none, the one before it goes on."""
    bounds = np.searchsorted(found.moments, edges)
    held = np.searchsorted(found.moments, edges, side="right") - 1
    pairs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), held[:-1].tolist(), strict=True)
    return [(first, end) if end > first else (before, before + 1) for first, end, before in pairs]


def _samples(found: Timeline, edges: Column) -> Column:
    """For each column of characters the point at which allocated is highest."""
    return np.array(
        [first + int(np.argmax(found.allocated[first:end])) for first, end in _ranges(found, edges)], np.int64
    )


def _bytes_of(found: Timeline, kind: _Kind) -> Column:
    """The bytes of a kind at each point."""
    total = np.zeros(len(found.moments), np.int64)
    for category in kind.categories:
        total += found.categories.get(category, 0)
    return total


def _row(plot: _Plot, row: int, label: str, margin: int, layout: TextOptions) -> Text:
    """One line of the plot; a cell is filled where a curve reaches its middle."""
    ascii_only, height = layout.ascii_only, plot.top / _ROWS
    kinds = (plot.levels < (row + 0.5) * height).sum(axis=0)
    reserved = np.minimum(np.ceil(plot.reserved / height) - 1, _ROWS - 1) == row
    at_limit = plot.limit is not None and min(int(plot.limit / height), _ROWS - 1) == row
    axis = ("+" if label else "|") if ascii_only else ("┤" if label else "│")
    line = Text(f"{INDENT}{label:>{margin}} {axis}", "dim")
    for kind, is_reserved in zip(kinds.tolist(), reserved.tolist(), strict=True):
        if kind < len(_KINDS):
            line.append(_KINDS[kind].shades[ascii_only], _KINDS[kind].colour)
        elif is_reserved:
            line.append(_RESERVED[ascii_only])
        else:
            line.append(_CARD[ascii_only] if at_limit else " ", "red")
    line.rstrip()
    return line


def _axis(found: Timeline, plot: _Plot, layout: TextOptions) -> str:
    """The lower edge, with a notch where a step begins."""
    notches = {_column(plot.edges, band.first) for band in found.steps if band.first}
    if len(notches) > plot.width // 4:
        notches = set()
    corner, line, notch = "+-+" if layout.ascii_only else "└─┴"
    return corner + "".join(notch if column in notches else line for column in range(plot.width))


def _below(found: Timeline, plot: _Plot, layout: TextOptions) -> Iterator[str]:
    """The rows of names: phases where they fit into their stretch, steps and marks where there is room."""
    yield _named_within(plot, found.phases)
    yield _named_from(plot, [(band.first, f"step {band.step}") for band in found.steps])
    pointer = "^" if layout.ascii_only else "▴"
    yield _named_from(
        plot, [(max(mark.moment, 0), f"{pointer}{printable(mark.name)}") for mark in found.marks]
    )


def _named_within(plot: _Plot, bands: Sequence[Band]) -> str:
    row = [" "] * plot.width
    for band in bands:
        first, end = _column(plot.edges, band.first), _column(plot.edges, band.end)
        room = (plot.width if band.end >= plot.edges[-1] else end - 1) - first
        for name in (phase(band.name), _SHORT.get(band.name, "")):
            if 0 < len(name) <= room:
                row[first : first + len(name)] = name
                break
    return "".join(row)


def _named_from(plot: _Plot, names: Iterable[tuple[int, str]]) -> str:
    """Names that begin at their moments, each if the ones before it leave it room."""
    row = ""
    for moment, name in names:
        column = _column(plot.edges, moment)
        if column >= cell_len(row) + bool(row) and column + cell_len(name) <= plot.width:
            row += " " * (column - cell_len(row)) + name
    return row


def _column(edges: Column, moment: int) -> int:
    """The column of characters that a moment is in."""
    return min(max(int(np.searchsorted(edges, moment, side="right")) - 1, 0), len(edges) - 2)


def _legend(found: Timeline, plot: _Plot, layout: TextOptions) -> list[Text]:
    shades = [
        f"{kind.shades[layout.ascii_only]} {named}" for kind in _KINDS if (named := _named(found, kind))
    ]
    shades.append(f"{_RESERVED[layout.ascii_only]} reserved")
    if plot.limit is not None:
        shades.append(f"{_CARD[layout.ascii_only]} the card's end")
    told = "  ".join(shade.replace(" ", GLUE) for shade in shades)
    events = f"{found.total_moments:,} events from left to right, the peak is event {found.peak_moment}"
    return wrapped("", told, layout) + wrapped("", events, layout, style="dim")


def _named(found: Timeline, kind: _Kind) -> str:
    """The categories of a shade, the largest first; nothing if none was ever there."""
    highest = {
        category: int(found.categories[category].max())
        for category in kind.categories
        if category in found.categories
    }
    names = sorted(highest, key=lambda category: -highest[category])
    more = " …" if len(names) > _NAMED else ""
    return ", ".join(map(plural, names[:_NAMED])) + more
