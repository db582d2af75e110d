"""What is live at the peak, for the terminal: by category, module and source line, and the largest blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from vramscope.analysis.grouping import grouped
from vramscope.analysis.peak import LiveBlock, Peak, Share
from vramscope.run.categories import plural
from vramscope.units import format_bytes, format_in
from vramscope.views.figures import COLOURS, figure, moment_in_words, number, phase, share, unit_of
from vramscope.views.paragraphs import TextOptions, finished, wrapped
from vramscope.views.tables import Bars, Column, ending, place_within, table

_MOST = 12
"""So many modules, lines and kinds of blocks are shown."""

_LEAST = 0.001
"""What is below this share of allocated is summed up."""


def peak_text(found: Peak | None, layout: TextOptions) -> Text:
    """A sentence and four tables."""
    if found is None:
        return finished(wrapped("", "nothing was allocated", layout), layout)
    lines = _headline(found, layout)
    for part in (
        _categories(found, layout),
        _shares("by module", "no module", grouped(found.modules, _MOST), found, layout, ending),
        _shares("by source line", "no line", found.lines, found, layout, place_within),
        _blocks(found, layout),
    ):
        lines += [Text(), *part] if part else []
    return finished(lines, layout)


def _headline(found: Peak, layout: TextOptions) -> list[Text]:
    what = "allocated peak" if found.is_peak else f"at moment {found.moment:,} allocated"
    sentence = f"{what} {format_bytes(found.allocated_bytes)} {moment_in_words(found)}".rstrip()
    lines = wrapped("", sentence, layout, style="bold")
    text = f": {found.line_text}" if found.line_text else ""
    return lines + (wrapped("", f"asked for at {found.line}{text}", layout) if found.line else [])


def _categories(found: Peak, layout: TextOptions) -> list[Text]:
    """The categories sum to allocated, with what is cached to reserved, with what is outside to the total."""
    told = [
        ("allocated", found.allocated_bytes),
        ("cached", found.cached_bytes),
        ("reserved", found.reserved_bytes),
        ("outside", found.outside_bytes),
        ("process total", found.process_total_bytes),
    ]
    sums = [(name, size) for name, size in told if size is not None]
    unit = unit_of((found.reserved_bytes,))
    parts, rest = found.categories, [""] * len(sums)
    columns = [
        Column(unit, [plural(each.name) for each in parts] + [name for name, _ in sums], right=False),
        Column(
            "",
            [
                format_in(size, unit)
                for size in (*(each.size_bytes for each in parts), *(size for _, size in sums))
            ],
        ),
        Column("share", [share(each.size_bytes, found.allocated_bytes) for each in parts] + rest),
        Column("blocks", [f"{each.blocks:,}" for each in parts] + [f"{found.blocks:,}", *rest[1:]], rank=3),
    ]
    bars = Bars(
        [each.size_bytes for each in parts] + [None] * len(sums),
        found.allocated_bytes,
        styles=[COLOURS[each.name] for each in parts] + rest,
    )
    styles = [""] * len(parts) + ["bold" if name == "allocated" else "dim" for name, _ in sums]
    return table(columns, layout, bars, styles)


def _shares(
    title: str,
    without: str,
    shares: Sequence[Share],
    found: Peak,
    layout: TextOptions,
    cut: Callable[[str, int], str],
) -> list[Text]:
    """Modules or lines, the largest first; nothing where there is but what has none."""
    if not any(each.name for each in shares):
        return []
    most = len([each for each in shares[:_MOST] if each.size_bytes >= _LEAST * found.allocated_bytes])
    shown, more = shares[:most], shares[most:]
    rest = sum(each.size_bytes for each in more)
    sizes = [each.size_bytes for each in shown] + [rest] * bool(more)
    names = [each.name or without for each in shown] + [f"{len(more):,} more"] * bool(more)
    blocks = [each.blocks for each in shown] + [sum(each.blocks for each in more)] * bool(more)
    unit = unit_of(sizes, fine=True)
    columns = [
        Column(title, names, right=False, least=18, cut=cut),
        Column(unit, [figure(size, unit) for size in sizes]),
        Column("share", [share(size, found.allocated_bytes) for size in sizes]),
        Column("blocks", [number(each) for each in blocks], rank=3),
    ]
    styles = ["" if each.name else "dim" for each in shown] + ["dim"] * bool(more)
    return table(columns, layout, Bars(sizes, found.allocated_bytes), styles)


def _blocks(found: Peak, layout: TextOptions) -> list[Text]:
    shown = [each for each in found.largest[:_MOST] if each.size_bytes >= _LEAST * found.allocated_bytes]
    unit = unit_of((each.size_bytes for each in shown), fine=True)
    columns = [
        Column("largest blocks", [_named(each) for each in shown], right=False, least=14, wish=24),
        Column("", [f"{each.count:,} ×" if each.count > 1 else "" for each in shown]),
        Column(unit, [figure(each.size_bytes, unit) for each in shown]),
        Column("category", [plural(each.category) for each in shown], right=False, rank=1),
        Column("since", [_since(each) for each in shown], right=False, rank=2),
        Column(
            "asked for at",
            [each.line or "" for each in shown],
            right=False,
            rank=3,
            least=18,
            cut=place_within,
        ),
    ]
    return table(columns, layout)


def _named(block: LiveBlock) -> str:
    """The tensor's name, else the module, else the line."""
    line = (block.line or "unknown").rpartition("/")[2].partition(" in ")[0]
    return block.name or block.module or line


def _since(block: LiveBlock) -> str:
    if block.phase is None:
        return "before"
    return phase(block.phase) if block.step is None else f"{phase(block.phase)} {block.step}"
