"""Two runs side by side for the terminal: figures in columns, modules as a tree, and why they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from vramscope.analysis.compare.figures import About, Comparison, Held, ModulePair, Pair
from vramscope.run.categories import plural
from vramscope.units import format_bytes, format_in
from vramscope.views import words
from vramscope.views.figures import change, in_phase, phase, unit_of
from vramscope.views.paragraphs import TextOptions, joined, wrapped
from vramscope.views.tables import Column, beginning, printable, table

_MOST = 14
"""So many modules are told; --json has all."""
_FOLD = 9
"""From ten times as much on, a factor says more than a percentage."""
_TOLD = 0.02
"""A module is told where at least this share of all that moved has moved in it."""


def compare_text(
    found: Comparison, options: TextOptions | None = None, names: tuple[str, str] | None = None
) -> Text:
    """The whole comparison; `names` are what the two runs are called, else what they were made from."""
    layout = options or TextOptions()
    blocks = [
        _about(found, layout, names),
        wrapped("", _headline(found), layout, style="bold"),
        _figures(found, layout),
        _modules(found, layout),
        _why(found, layout),
    ]
    return joined(blocks, layout)


def _about(found: Comparison, layout: TextOptions, names: tuple[str, str] | None) -> list[Text]:
    lines = []
    for label, about, name in zip(_sides(found), (found.a, found.b), names or ("", ""), strict=True):
        lines += wrapped(label, f"{name or about.name or 'a run without a name'}: {_in_words(about)}", layout)
    for number, each in enumerate(found.conditions):
        differing = f"{each.name}: {each.a or 'none'} · {each.b or 'none'}"
        lines += wrapped("not the same" if not number else " ", differing, layout, style="yellow")
    return lines


def _sides(found: Comparison) -> tuple[str, str]:
    return (found.a.origin, found.b.origin) if found.is_residual else ("A", "B")


def _changes(found: Comparison) -> str:
    return "residual" if found.is_residual else "change"


def _in_words(about: About) -> str:
    if not about.has_report and not about.has_history:
        return f"{about.origin}, nothing was recorded"
    parts = [about.origin, words.count(about.steps, "complete step")]
    if about.ended:
        parts.append(f"{about.ended}, so its figures are lower bounds")
    if place := in_phase(about.peak_phase, about.peak_step):
        parts.append(f"allocated peaks {place}")
    if not about.has_history:
        parts.append("without a history, so there is nothing but the report's figures")
    return ", ".join(parts)


def _headline(found: Comparison) -> str:
    known = [pair for pair in found.totals if pair.change_bytes is not None and pair.name != "outside"]
    if not known:
        return "no figure is known of both"
    if not any(pair.change_bytes for pair in known):
        names = [pair.name for pair in known]
        same = "as predicted" if found.is_residual else "the same"
        return f"{', '.join(names[:-1])} and {names[-1]} are {same}, to the byte"
    return "; ".join(_told(found, pair) for pair in known)


def _told(found: Comparison, pair: Pair) -> str:
    """``peak allocated fell by 1.24 GiB (−35.0 %)``."""
    residual, moved = found.residual_bytes(pair), pair.change_bytes or 0
    if not moved:
        return f"{pair.name} {'as predicted' if found.is_residual else 'the same'}, to the byte"
    share = _share(found, pair)
    of = f" ({share})" if share else ""
    if residual is None:
        return f"{pair.name} {'rose' if moved > 0 else 'fell'} by {format_bytes(abs(moved))}{of}"
    return (
        f"{pair.name} {format_bytes(abs(residual))} {'above' if residual > 0 else 'below'} the prediction{of}"
    )


@dataclass(frozen=True, slots=True)
class _Row:
    label: str
    pair: Pair | None = None
    most: Pair | None = None
    """The same category wherever it held most."""
    absent: tuple[str, str] = (words.UNKNOWN, words.UNKNOWN)
    """What is said where A or B has no figure."""


def _figures(found: Comparison, layout: TextOptions) -> list[Text]:
    rows = list(_rows(found))
    pairs = [pair for row in rows for pair in (row.pair, row.most) if pair]
    unit = unit_of((size for pair in pairs for size in (pair.a_bytes, pair.b_bytes)), fine=True)
    one, other = _sides(found)
    columns = [
        Column(unit, [row.label for row in rows], right=False, least=23, cut=beginning),
        Column(one, [_figure(row, row.pair, "a", unit) for row in rows]),
        Column(other, [_figure(row, row.pair, "b", unit) for row in rows]),
        Column(_changes(found), [_changed(found, row, unit) for row in rows]),
        Column("", [_share(found, row.pair) if _changed(found, row, unit) else "" for row in rows], rank=1),
        Column(f"max {one}", [_figure(row, row.most, "a", unit) for row in rows], rank=2),
        Column(f"max {other}", [_figure(row, row.most, "b", unit) for row in rows], rank=2),
    ]
    return table(columns, layout, styles=["" if row.pair else "dim" for row in rows])


def _rows(found: Comparison) -> Iterator[_Row]:
    yield from (_Row(pair.name, pair) for pair in found.totals)
    if found.highest:
        at_peak = {pair.name: pair for pair in found.categories}
        yield _Row("at its allocated peak")
        for most in found.highest:
            none = Pair(most.name, *(None if size is None else 0 for size in (most.a_bytes, most.b_bytes)))
            yield _Row(f"  {plural(most.name)}", at_peak.get(most.name, none), most)
    if found.phases:
        yield _Row("peak allocated within")
        one, other = (("none" if each.has_history else words.UNKNOWN) for each in (found.a, found.b))
        yield from (_Row(f"  {phase(pair.name)}", pair, absent=(one, other)) for pair in found.phases)


def _figure(row: _Row, pair: Pair | None, side: str, unit: str) -> str:
    if pair is None:
        return ""
    size, absent = (pair.a_bytes, row.absent[0]) if side == "a" else (pair.b_bytes, row.absent[1])
    return absent if size is None else format_in(size, unit)


def _changed(found: Comparison, row: _Row, unit: str) -> str:
    if row.pair is None or row.pair.change_bytes is None:
        return ""
    return change(found.direction * row.pair.change_bytes, unit)


def _share(found: Comparison, pair: Pair | None) -> str:
    """The change in percent of A, the residual in percent of the predicted figure."""
    if pair is None or not pair.change_bytes:
        return ""
    if found.is_residual:
        return _percent(found.residual_share(pair))
    return _percent(pair.change_bytes / pair.a_bytes) if pair.a_bytes else ""


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    if share >= _FOLD:
        return f"× {1 + share:,.0f}"
    text = f"{abs(100 * share):,.1f}"
    return f"{'+' if share > 0 else '−'}{text} %" if text != "0.0" else "<0.1 %"


def _modules(found: Comparison, layout: TextOptions) -> list[Text]:
    moved = sum(each.moved_bytes for each in found.modules)
    if not moved:
        return []
    rows = _fitting(found.modules, moved)
    pairs = [pair for _, pair in rows]
    known = [held for pair in pairs for held in (pair.a, pair.b) if held]
    unit = unit_of((held.total_bytes for held in known), fine=True)
    one, other = _sides(found)
    changes = [[found.direction * size for size in pair.changes] for pair in pairs]
    columns = [
        Column(unit, [label for label, _ in rows], right=False, least=26),
        Column(one, [_module_figure(pair.a, unit) for pair in pairs]),
        Column(other, [_module_figure(pair.b, unit) for pair in pairs]),
        Column(_changes(found), [change(sum(sizes), unit) for sizes in changes]),
        *(
            Column(name, [change(sizes[number], unit) for sizes in changes], rank=rank)
            for number, (name, rank) in enumerate(_KINDS)
        ),
    ]
    return [
        *wrapped("", "the modules that differ most, in what they hold and keep", layout, style="dim"),
        *table(columns, layout),
    ]


_KINDS = (("activations", 1), ("weights", 4), ("gradients", 2), ("optimizer", 3))


def _module_figure(held: Held | None, unit: str) -> str:
    return "none" if held is None else format_in(held.total_bytes, unit)


def _fitting(trees: Sequence[ModulePair], moved: int) -> list[tuple[str, ModulePair]]:
    """The modules with a notable change, as many levels of them as there is room for."""
    least, depth = _TOLD * moved, 1
    shown = list(_below(trees, least, depth, 0))
    while len(deeper := list(_below(trees, least, depth + 1, 0))) <= _MOST and len(deeper) > len(shown):
        shown, depth = deeper, depth + 1
    return shown[:_MOST]


def _below(
    siblings: Sequence[ModulePair], least: float, depth: int, level: int, above: str = ""
) -> Iterator[tuple[str, ModulePair]]:
    told = [each for each in siblings if each.moved_bytes >= least]
    for each in sorted(told, key=lambda pair: -pair.moved_bytes):
        only = [child for child in each.children if child.moved_bytes == each.moved_bytes]
        if len(only) == 1:
            yield from _below(only, least, depth, level, above)
            continue
        yield "  " * level + _label(each, above), each
        if level < depth:
            yield from _below(each.children, least, depth, level + 1, each.path)


def _label(pair: ModulePair, above: str) -> str:
    """``h.0 to h.11 × 12``; below such a row the name alone, ``attn × 12``."""
    depth = above.count(".") + 1 if above else 0
    first, last = (path.split(".")[depth:] for path in (pair.path, pair.last))
    name = printable(".".join(first)) or "whole model"
    if pair.copies == 1:
        return name
    differing = next(
        (n for n, (one, other) in enumerate(zip(first, last, strict=True)) if one != other), None
    )
    if differing is None:
        return f"{name} × {pair.copies}"
    return f"{name} to {printable('.'.join(last[max(differing - 1, 0) :]))} × {pair.copies}"


def _why(found: Comparison, layout: TextOptions) -> list[Text]:
    lines = []
    for number, reason in enumerate(found.reasons):
        lines += wrapped(" " if number else "why", reason.sentence, layout)
    return lines
