"""Figures of one unit, and a few words, as all views of a run have them."""

from __future__ import annotations

from collections.abc import Iterable

from vramscope.analysis.peak import Peak
from vramscope.run.categories import CATEGORIES
from vramscope.units import GIB, TIB, format_in, unit_for
from vramscope.views import words

COLOURS = dict(
    zip(
        CATEGORIES,
        (
            *("blue", "bright_blue", "magenta", "green", "cyan", "bright_green"),
            *("yellow", "red", "bright_yellow", "bright_magenta", "bright_cyan", "bright_black"),
        ),
        strict=True,
    )
)
"""A category's colour, the same in every view."""


def unit_of(sizes: Iterable[int | None], *, fine: bool = False) -> str:
    """The unit of a table with these sizes: MiB below 1 GiB, GiB above, KiB where there is no MiB.

    `fine` is for tables of parts, most of which are far smaller than the whole: MiB up to 1 TiB."""
    highest = max((abs(size) for size in sizes if size is not None), default=0)
    unit = unit_for(highest)
    if unit == "TiB":
        return "GiB"
    return "MiB" if fine and GIB <= highest < TIB else unit


def figure(size: int | None, unit: str) -> str:
    """A figure of a table; nothing for zero, so that what is there stands out; what is not known is said."""
    if size is None:
        return words.UNKNOWN
    return format_in(size, unit) if size else ""


def change(size: int, unit: str) -> str:
    """A difference with its sign; nothing where it would round to zero."""
    text = format_in(abs(size), unit)
    return f"{'+' if size > 0 else '−'}{text}" if any(each in text for each in "123456789") else ""


def share(part: int, whole: int) -> str:
    """A share in percent; nothing for nothing."""
    if not part or not whole:
        return ""
    percent = 100 * part / whole
    return f"{percent:.1f} %" if percent >= 0.05 else "<0.1 %"


def number(value: int) -> str:
    """A count for a column."""
    return f"{value:,}" if value else ""


def phase(name: str | None) -> str:
    """A phase as a word."""
    return (name or words.UNKNOWN).replace("_", " ")


def moment_in_words(found: Peak) -> str:
    """``in backward, step 2, for ResNet.layer1.0.conv1``, as far as it is known."""
    if found.moment < 0:
        return "before the history began"
    place = in_phase(found.phase, found.step)
    return ", ".join(filter(None, [place, f"for {found.module}" if found.module else ""]))


def in_phase(name: str | None, step: int | None) -> str:
    """``in backward, step 2``; nothing where no phases are known, as in a snapshot."""
    return "" if step is None and name in (None, "other") else words.in_phase(name, step)
