"""Tables that fit themselves to a width: columns are cut or left out by what they matter, and bars fill the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.text import Text

from vramscope.views.paragraphs import INDENT, TextOptions, wrapped
from vramscope.views.report_text import bar

GAP = "  "
_BAR = (6, 24)
"""A bar's shortest and longest width; where there is no room for the shortest there is none."""
_ROOM_FOR_A_BAR = 14
"""So much is left to it before a column of a rank above 2 is shown."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    head: str
    cells: Sequence[str]
    right: bool = True
    rank: int = 0
    """0 always stays; where the line is too narrow, the columns of the highest rank go first."""
    least: int | None = None
    """It may be cut to this width."""
    wish: int | None = None
    """Before it is cut below this width, columns of a rank above 1 go."""
    cut: Callable[[str, int], str] | None = None
    """How; None: at its beginning, since the end of a path tells more."""
    style: str = ""
    styles: Sequence[str] = ()
    """Of each cell, instead of the column's one."""

    def style_of(self, row: int) -> str:
        """A cell's style."""
        return self.styles[row] if self.styles else self.style


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar at the end of each row, drawn where there is room."""

    parts: Sequence[int | None]
    whole: int
    beyond: Sequence[int | None] = ()
    """How far a lighter bar goes on, at least as far as the part."""
    styles: Sequence[str] = ()


def table(
    columns: Sequence[Column], layout: TextOptions, bars: Bars | None = None, styles: Sequence[str] = ()
) -> list[Text]:
    """The head and the rows, no wider than the terminal; `styles` are those of whole rows."""
    told = [_clean(column) for column in columns if any(column.cells)]
    if not told:
        return []
    chosen = _fitting(told, layout.width, bars is not None)
    widths = _widths(chosen, layout.width)
    lines = [_line([column.head for column in chosen], chosen, widths, ["dim"] * len(chosen))]
    for row, cells in enumerate(zip(*(column.cells for column in chosen), strict=True)):
        line = _line(cells, chosen, widths, [column.style_of(row) for column in chosen])
        if bars is not None:
            line.append_text(_drawn(bars, row, layout, line.cell_len))
        if styles and styles[row]:
            line.stylize(styles[row])
        line.rstrip()
        lines.append(line)
    lines[0].rstrip()
    return lines + _left_out(told, chosen, layout)


def printable(text: str) -> str:
    """What a program or a file tells, without what would move the cursor or paint the terminal."""
    return "".join(each if each.isprintable() else " " for each in text)


def ending(text: str, width: int) -> str:
    """The text cut at its beginning to a width: the end of a path tells more."""
    if cell_len(text) <= width:
        return text
    kept = text[-width:]
    while kept and cell_len(kept) > width - 1:
        kept = kept[1:]
    return f"…{kept}"


def beginning(text: str, width: int) -> str:
    """The text cut at its end to a width."""
    if cell_len(text) <= width:
        return text
    kept = text[:width]
    while kept and cell_len(kept) > width - 1:
        kept = kept[:-1]
    return f"{kept}…"


def place_within(place: str, width: int) -> str:
    """``src/train.py:41 in main`` within a width: without its folder, then without the end of the function."""
    if cell_len(place) <= width:
        return place
    file = place.rpartition("/")[2]
    line = file.partition(" in ")[0]
    return beginning(file, width) if cell_len(line) < width else ending(line, width)


def _clean(column: Column) -> Column:
    return replace(column, cells=[printable(cell) for cell in column.cells])


def _fitting(columns: Sequence[Column], width: int, with_bars: bool) -> list[Column]:
    """The columns that there is room for."""
    chosen = list(columns)
    while (first := max(reversed(chosen), key=lambda column: column.rank)).rank:
        spare = _ROOM_FOR_A_BAR if with_bars and first.rank > 2 else 0
        if _least(chosen, wished=first.rank > 1) + spare <= width:
            break
        chosen.remove(first)
    return chosen


def _least(columns: Sequence[Column], *, wished: bool) -> int:
    """The width of a line whose columns are cut as far as may be."""
    narrow = 0
    for column in columns:
        least = (column.wish or column.least) if wished else column.least
        narrow += min(_natural(column), least or _natural(column))
    return len(INDENT) + narrow + len(GAP) * (len(columns) - 1)


def _natural(column: Column) -> int:
    return max(map(cell_len, (column.head, *column.cells)))


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Each as wide as its cells, but for those that may be cut: they share what is missing."""
    widths = [_natural(column) for column in columns]
    over = len(INDENT) + sum(widths) + len(GAP) * (len(columns) - 1) - width
    while over > 0:
        spare = [
            each - (column.least or each) if column.least else 0
            for each, column in zip(widths, columns, strict=True)
        ]
        if max(spare) <= 0:
            break
        widest = max(range(len(widths)), key=lambda index: spare[index])
        widths[widest] -= 1
        over -= 1
    return widths


def _line(
    cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], styles: Sequence[str]
) -> Text:
    line = Text(INDENT)
    for index, (cell, column, width) in enumerate(zip(cells, columns, widths, strict=True)):
        text = (column.cut or ending)(cell, width)
        padding = " " * (width - cell_len(text))
        line.append(GAP if index else "")
        line.append(padding + text if column.right else text + padding, styles[index])
    return line


def _drawn(bars: Bars, row: int, layout: TextOptions, used: int) -> Text:
    """The bar of a row, and the lighter one that goes on from it."""
    room = min(_BAR[1], layout.width - used - len(GAP))
    part = bars.parts[row]
    if room < _BAR[0] or part is None:
        return Text()
    solid = bar(part, bars.whole, room, ascii_only=layout.ascii_only)
    beyond = bars.beyond[row] if bars.beyond else None
    light = (
        0 if beyond is None or not bars.whole else round(min(beyond / bars.whole, 1.0) * room) - len(solid)
    )
    style = bars.styles[row] if bars.styles else "cyan"
    drawn = Text(GAP)
    drawn.append(solid, style)
    drawn.append(("-" if layout.ascii_only else "░") * max(light, 0), style)
    return drawn


def _left_out(told: Sequence[Column], chosen: Sequence[Column], layout: TextOptions) -> list[Text]:
    """What a wider terminal would show, where it matters."""
    missing = [column.head for column in told if column not in chosen and column.rank == 1]
    return wrapped("", f"no room here for: {', '.join(missing)}", layout, style="dim") if missing else []
