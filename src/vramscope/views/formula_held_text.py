"""Formulas beside a model's predicted run, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from vramscope.theory.formula import Formula
from vramscope.theory.held import Held, Row
from vramscope.units import format_bytes, format_in
from vramscope.views import formula_words as say
from vramscope.views.figures import change, unit_of
from vramscope.views.formula_text import beside, step_lines
from vramscope.views.paragraphs import TextOptions, command_lines, glued, joined, wrapped
from vramscope.views.stages_lab_words import scaled
from vramscope.views.tables import Bars, Column, beginning, table


def held_text(found: Held, options: TextOptions | None = None) -> Text:
    """All of it; the options' commands are the last lines."""
    layout = options or TextOptions()
    unit = unit_of((row.run_bytes for row in found.rows), fine=True)
    blocks = [
        _head(found, layout),
        _table(found, layout, unit),
        _why(found, layout),
        _layers(found, layout),
        _grounds(found, layout),
        _others(found, layout),
        _claims(found, layout),
        _speed(found, layout),
        [*_notes(found, layout), *command_lines(layout)],
    ]
    return joined(blocks, layout)


def _head(found: Held, layout: TextOptions) -> list[Text]:
    lines = wrapped("", glued(say.subject(found)), layout, style="bold")
    lines += wrapped("", say.size(found), layout)
    return lines + wrapped("", f"predicted peaks: {say.peaks(found)}", layout)


def _table(found: Held, layout: TextOptions, unit: str) -> list[Text]:
    """Categories and their sum; formula + beyond + rounding + unsplit = run."""
    rows = found.rows

    def cells(name: str) -> list[str]:
        figures = [getattr(row, name) for row in rows]
        return [change(size, unit).removeprefix("+") for size in (*figures, sum(figures))]

    runs = [row.run_bytes for row in rows]
    formulas = ["" if row.formula_bytes is None else format_in(row.formula_bytes, unit) for row in rows]
    columns = [
        Column(unit, [*(say.category(row.category) for row in rows), "sum"], right=False),
        Column("formula", [*formulas, format_in(found.formula_bytes, unit)], style="cyan"),
        Column("beyond", cells("beyond_bytes")),
        Column("rounding", cells("rounding_bytes"), rank=1),
        Column("unsplit", cells("unsplit_bytes"), rank=1),
        Column("run", [format_in(size, unit) for size in (*runs, found.run_bytes)], style="bold"),
    ]
    sizes = [*runs, None]
    return table(columns, layout, Bars(sizes, max((size or 0 for size in sizes), default=0)))


def _why(found: Held, layout: TextOptions) -> list[Text]:
    lines: list[Text] = []
    for row in found.rows:
        if row.beyond_bytes and row.why:
            lines += beside(say.category(row.category), _told(row), layout)
    for label, text in say.columns(found):
        lines += beside(label, text, layout)
    return lines


def _told(row: Row) -> str:
    beyond = (
        f"{'−' if row.beyond_bytes < 0 else ''}{format_bytes(abs(row.beyond_bytes))} beyond the formula: "
    )
    return f"{beyond if row.formula is not None else ''}{'; '.join(row.why)}"


def _layers(found: Held, layout: TextOptions) -> list[Text]:
    rows = [row for row in found.layers if row.saved_bytes or row.seen_bytes or row.forward_flops]
    if not rows:
        return []
    unit = unit_of((row.seen_bytes for row in rows), fine=True)
    columns = [
        Column("layers", [row.kind or "the program" for row in rows], right=False, least=10, cut=beginning),
        Column("calls", [str(row.calls or "") for row in rows]),
        Column(
            "forward FLOPs", [scaled(row.forward_flops) if row.forward_flops else "" for row in rows], rank=1
        ),
        Column(f"saved {unit}", [_figure(row.saved_bytes, unit) for row in rows], style="cyan"),
        Column("really", [_figure(row.seen_bytes, unit) for row in rows], style="bold"),
        Column("difference", [change(row.seen_bytes - row.saved_bytes, unit) for row in rows], rank=1),
    ]
    lines = table(columns, layout)
    return [*lines, *beside("FLOPs", say.flops(found), layout)]


def _figure(size: int, unit: str) -> str:
    return format_in(size, unit) if size else ""


def _grounds(found: Held, layout: TextOptions) -> list[Text]:
    lines: list[Text] = []
    for row in found.rows:
        if row.formula is not None:
            text = f"{row.formula.expression}. {say.grounds(row.formula)}"
            lines += beside(say.category(row.category), text, layout)
    return lines


def _others(found: Held, layout: TextOptions) -> list[Text]:
    return [line for formula, run in found.others for line in _other(formula, run, layout)]


def _other(formula: Formula, run: int | None, layout: TextOptions) -> Iterator[Text]:
    """A closed form for the whole, beside what the run has."""
    metric = next(iter(formula.values))
    told = [f"{name} {text}" for name, text in (say.value(*each) for each in formula.values.items())]
    has = "" if run is None else f"; the run has {say.value(metric, run)[1]}"
    yield from wrapped("", formula.name, layout, style="bold")
    yield from beside("formula", formula.expression, layout)
    yield from beside("says", f"{', '.join(told)}{has}", layout)
    yield from beside("assumes", say.grounds(formula), layout)


def _claims(found: Held, layout: TextOptions) -> list[Text]:
    if not found.claims:
        return []
    sizes = [each.said_bytes for each in found.claims]
    unit = unit_of(sizes, fine=True)
    run = found.claims[0].run_bytes
    columns = [
        Column("claim", [each.name for each in found.claims], right=False),
        Column(
            "of", [each.said for each in found.claims], right=False, rank=2, least=12, wish=24, cut=beginning
        ),
        Column("bytes each", [str(each.per_parameter) for each in found.claims]),
        Column(f"{unit} said", [format_in(size, unit) for size in sizes], style="cyan"),
        Column("run", [format_in(run, unit)] * len(sizes), style="bold"),
        Column("said − run", [change(size - run, unit) for size in sizes]),
    ]
    lines = wrapped(
        "", "The articles' claims, beside weights, gradients and states of the run", layout, style="bold"
    )
    lines += table(columns, layout)
    each = run / found.parameters
    lines += beside(
        "run", f"{each:.2f} bytes for each of {found.parameters:,} parameters, with rounding", layout
    )
    for claim in found.claims:
        lines += beside(claim.name, claim.why, layout)
    return lines


def _speed(found: Held, layout: TextOptions) -> list[Text]:
    if not found.speed:
        return []
    title = wrapped(
        "", "The shortest step that the card allows: a bound, not a forecast", layout, style="bold"
    )
    return title + step_lines(found.speed, layout)


def _notes(found: Held, layout: TextOptions) -> list[Text]:
    return beside("rests on", "; ".join(found.notes), layout) if found.notes else []
