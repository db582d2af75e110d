"""The matrix as a heat map: two knobs as axes, small maps beside each other for the others and the cards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from vramscope.planning.plan import Plan, Row
from vramscope.planning.result import CANNOT_RUN, DOES_NOT_FIT, FITS, Result
from vramscope.views import plan_words as say
from vramscope.views import words
from vramscope.views.page.markup import Markup, element, joined, section
from vramscope.views.plan_page.names import row_id, short_verdict

STEPS = 8
"""So many shades, from next to nothing of the card's memory to all of it."""
_CARD = "card"
_NOTE = "The stronger the blue, the more of the card it takes; hatched does not fit, and shows what it needs."
_OTHERS = (("over", "does not fit"), ("cannot", "cannot run, or failed"))

Axis = tuple[str, tuple[str, ...]]
"""What varies along it, and its positions."""


def heat_html(plan: Plan) -> Markup:
    """All maps; nothing where nothing varies."""
    axes = _axes(plan)
    if not axes:
        return Markup()
    across, down, others = _chosen(axes)
    places = {tuple(_position(row, name) for name, _ in axes): row for row in plan.rows}
    maps = []
    for fixed in product(*(positions for _, positions in others)):
        held = {name: value for (name, _), value in zip(others, fixed, strict=True)}
        maps.append(_map(axes, across, down, held, places))
    note = element("p", f"Process total in GiB. {_NOTE}", class_="note")
    return section("matrix", "Matrix", note, _scale(), element("div", *maps, class_="maps"))


def _axes(plan: Plan) -> list[Axis]:
    """The knobs and the cards that really vary."""
    names = [*plan.varied, _CARD]
    found = [(name, tuple(dict.fromkeys(_position(row, name) for row in plan.rows))) for name in names]
    return [axis for axis in found if len(axis[1]) > 1]


def _chosen(axes: Sequence[Axis]) -> tuple[Axis, Axis | None, list[Axis]]:
    """The axes across and down, those with the most positions, and the rest; a card is an axis if a knob is alone."""
    order = sorted(axes, key=lambda axis: (axis[0] == _CARD, -len(axis[1])))
    pair = [axis for axis in axes if axis in order[:2]]
    down, across = (pair[0], pair[1]) if len(pair) > 1 else (None, pair[0])
    return across, down, [axis for axis in axes if axis not in pair]


def _position(row: Row, name: str) -> str:
    return row.card if name == _CARD else row.turned.get(name, "")


def _map(
    axes: Sequence[Axis],
    across: Axis,
    down: Axis | None,
    held: dict[str, str],
    places: dict[tuple[str, ...], Row],
) -> Markup:
    corner = f"{down[0]} ↓ {across[0]} →" if down else f"{across[0]} →"
    head = element(
        "tr",
        element("th", corner, scope="col", class_="corner"),
        *(element("th", each, scope="col") for each in across[1]),
    )
    lines = []
    for name in down[1] if down else ("",):
        at = {**held, **({down[0]: name} if down else {})}
        cells = [
            _cell(places.get(tuple({**at, across[0]: each}[axis] for axis, _ in axes))) for each in across[1]
        ]
        lines.append(element("tr", element("th", name, scope="row"), *cells))
    title = " · ".join(_told(name, value) for name, value in held.items())
    table = element(
        "table", element("caption", title or "All rows"), element("thead", head), element("tbody", *lines)
    )
    label = f"Matrix {title}".strip()
    return element("div", table, class_="heat scroll", tabindex="0", role="region", aria_label=label)


def _told(name: str, value: str) -> str:
    return value if name == _CARD else f"{name} {value}"


def _cell(row: Row | None) -> Markup:
    if row is None:
        return element("td", class_="none")
    result = row.result
    total = "–" if result.process_total_bytes is None else words.gib(result.process_total_bytes)
    link = element(
        "a", element("b", total), " ", element("span", short_verdict(result)), href=f"#{row_id(row)}"
    )
    return element("td", link, class_=shade(result), title=f"row {row.number}: {say.outcome(result)}")


def shade(result: Result) -> str:
    """The class of a cell: ``h1`` to ``h8`` by the share of the card, ``over``, ``cannot`` or ``broke``."""
    if result.verdict == DOES_NOT_FIT:
        return "over"
    if result.verdict != FITS:
        return "cannot" if result.verdict == CANNOT_RUN else "broke"
    share = (result.process_total_bytes or 0) / max(result.capacity_bytes, 1)
    return f"h{min(max(int(share * STEPS) + 1, 1), STEPS)}"


def _scale() -> Markup:
    """What the shades mean."""
    shades = joined(element("i", class_=f"key h{number}") for number in range(1, STEPS + 1))
    entries = [element("li", "nothing ", shades, " all of the card's memory")]
    entries += [element("li", element("i", class_=f"key {name}"), f" {text}") for name, text in _OTHERS]
    return element("ul", *entries, class_="legend keys")
