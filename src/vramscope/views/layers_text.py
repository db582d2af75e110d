"""The model for the terminal: its modules with what each holds and keeps, repeated ones told once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.text import Text

from vramscope.analysis.folding import fold
from vramscope.analysis.layers import Layer, Layers, Sizes
from vramscope.units import format_bytes
from vramscope.views.figures import figure, number, share, unit_of
from vramscope.views.paragraphs import TextOptions, finished, wrapped
from vramscope.views.tables import Bars, Column, beginning, table

_MOST = 40
"""Without a depth, as many levels are shown as fit into so many rows."""
_WORTH_A_WORD = 0.01
"""The share of the peak from which the activations are in the headline."""
_ITS_OWN = 0.01
"""The share from which a module's own has a row beside the modules below it."""
_SMALLEST = 0.0005
"""The share from which a module without parameters has a row."""
_ELSEWHERE, _ITSELF = "no module", "(itself)"


@dataclass(frozen=True, slots=True)
class _Row:
    label: str
    kind: str
    sizes: Sizes


def layers_text(found: Layers, layout: TextOptions, depth: int | None = None) -> Text:
    """A sentence and the tree; `depth` is how many levels below the outermost modules are shown."""
    if not found.roots:
        return finished(wrapped("", _no_modules(found), layout), layout)
    trees, whole = fold(found.roots), found.allocated_bytes
    rows = list(_rows(trees, _fitting_depth(trees, whole) if depth is None else depth, whole))
    if found.elsewhere.peak_bytes or found.elsewhere.activation_bytes:
        rows.append(_Row(_ELSEWHERE, "", found.elsewhere))
    headline = wrapped("", _headline(found), layout, style="bold")
    return finished([*headline, Text(), *_table(rows, found, layout)], layout)


def _no_modules(found: Layers) -> str:
    return (
        f"no modules are known, so the {format_bytes(found.allocated_bytes)} at the peak cannot be told by layer "
        "(a snapshot of torch's names none): --lines tells them by source line"
    )


def _headline(found: Layers) -> str:
    total = found.total
    frozen = total.parameters - total.trainable
    trains = "all trainable" if not frozen else f"{total.trainable:,} trainable"
    kept = share(total.activation_bytes, found.allocated_bytes)
    of_peak = f", {kept} of the {format_bytes(found.allocated_bytes)} at the peak" if kept else ""
    told = [f"{total.parameters:,} parameters, {trains}"] if total.parameters else []
    if total.activation_bytes >= _WORTH_A_WORD * found.allocated_bytes or not told:
        told.append(f"{format_bytes(total.activation_bytes)} of activations kept for backward{of_peak}")
    return "; ".join(told)


def _fitting_depth(trees: Sequence[Layer], whole: int) -> int:
    """The most levels whose rows are not too many."""
    shown, depth = len(list(_rows(trees, 1, whole))), 1
    while (more := len(list(_rows(trees, depth + 1, whole)))) <= _MOST and more > shown:
        shown, depth = more, depth + 1
    return depth


def _rows(trees: Iterable[Layer], depth: int, whole: int) -> Iterator[_Row]:
    """The modules down to a depth that hold anything of the `whole` peak."""
    for tree in trees:
        if _holds(tree.total, whole):
            yield from _below(tree, _Level(0, depth, "", 1, whole))


class _Level(NamedTuple):
    """Where in the tree a module is."""

    number: int
    deepest: int
    above: str
    """The name of the module above it."""
    copies: int
    """How many of those there are."""
    whole: int
    """Allocated at the peak."""


def _below(layer: Layer, level: _Level) -> Iterator[_Row]:
    """A module and those below it that hold anything; a list of modules with one entry is that entry."""
    filled = [child for child in layer.children if _holds(child.total, level.whole)]
    below = level._replace(above=layer.name, copies=layer.copies)
    if len(filled) == 1 and filled[0].copies > layer.copies and not _holds(layer.own, level.whole):
        yield from _below(filled[0], below)
        return
    label = _label(layer, level.above, layer.copies // level.copies)
    yield _Row("  " * level.number + label, layer.kind, layer.total)
    if level.number < level.deepest:
        if filled and max(layer.own.peak_bytes, layer.own.activation_bytes) >= _ITS_OWN * level.whole:
            yield _Row("  " * (level.number + 1) + _ITSELF, "", layer.own)
        for child in filled:
            yield from _below(child, below._replace(number=level.number + 1))


def _holds(sizes: Sizes, whole: int) -> bool:
    """Whether there are parameters, or bytes that show, other than scratch memory."""
    lasting = (
        *(sizes.weight_bytes, sizes.gradient_bytes, sizes.optimizer_state_bytes),
        *(sizes.activation_bytes, sizes.peak_bytes),
    )
    return bool(sizes.parameters) or max(lasting) > _SMALLEST * whole


def _label(layer: Layer, above: str, copies: int) -> str:
    """Its name; a number says little, so it comes with the name of its list: ``h.0–11 × 12``."""
    name = f"{above}.{layer.name}" if layer.name.isdigit() and above else layer.name
    return f"{name}–{layer.last.rpartition('.')[2]} × {copies}" if copies > 1 else name


def _table(rows: Sequence[_Row], found: Layers, layout: TextOptions) -> list[Text]:
    sizes = [row.sizes for row in rows]
    unit = unit_of((each.peak_bytes for each in sizes), fine=True)

    def figures(name: str) -> list[str]:
        return [figure(getattr(each, name), unit) for each in sizes]

    columns = [
        Column(unit, [row.label for row in rows], right=False, least=14, cut=beginning),
        Column("class", [row.kind for row in rows], right=False, rank=6, style="dim"),
        Column("parameters", [number(each.parameters) for each in sizes], rank=1),
        Column("", [_trains(each) for each in sizes], right=False, rank=4, style="dim"),
        Column("weights", figures("weight_bytes"), rank=2),
        Column("gradients", figures("gradient_bytes"), rank=3),
        Column("optimizer", figures("optimizer_state_bytes"), rank=2),
        Column("activations", figures("activation_bytes")),
        Column("scratch", figures("scratch_peak_bytes"), rank=5),
        Column("of peak", [share(each.peak_bytes, found.allocated_bytes) for each in sizes]),
    ]
    bars = Bars([each.peak_bytes for each in sizes], found.allocated_bytes)
    return table(columns, layout, bars)


def _trains(sizes: Sizes) -> str:
    """Whether its parameters get gradients, where that is worth a word."""
    if sizes.trainable == sizes.parameters:
        return ""
    return "frozen" if not sizes.trainable else "partly frozen"
