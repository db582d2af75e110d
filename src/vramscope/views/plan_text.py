"""A plan for the terminal: what fits, the matrix as a table, what moved against the baseline and why, the searches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from rich.text import Text

from vramscope.planning.plan import Plan, Row, Way
from vramscope.planning.result import DOES_NOT_FIT, FITS, Result
from vramscope.run.categories import plural
from vramscope.units import format_bytes, format_in
from vramscope.views import plan_words as say
from vramscope.views.figures import change, phase, unit_of
from vramscope.views.paragraphs import (
    GLUE,
    INDENT,
    LABEL,
    TextOptions,
    command_lines,
    glued,
    joined,
    labelled,
    wrapped,
)
from vramscope.views.plan_rows import (
    MEMORY,
    Combination,
    by_card,
    change_of_total,
    combinations,
    largest,
)
from vramscope.views.tables import GAP, Column, beginning, table

_PLACE, _MOSTLY = "allocated peaks in", "mostly"
_KNOB = 10
"""A knob's column is about so wide; where there is no room for all of them they share one."""
_REST = 34
"""What the columns beside the knobs take at the least."""
_EXPLAINED = 16
"""So many combinations are explained; --json has all."""
_LISTED = 5
"""So many notes are told."""
_STYLES = {FITS: "green", DOES_NOT_FIT: "red"}


def plan_text(plan: Plan, options: TextOptions | None = None, sort: str = MEMORY) -> Text:
    """All of it; `sort` is `memory` or `order`.  The options' commands are the last lines."""
    layout = options or TextOptions()
    blocks = [
        _head(plan, layout),
        _conditions(plan, layout),
        _searches(plan, layout),
        *_matrix(plan, layout, sort),
        _facts(plan, layout),
    ]
    return joined(blocks, layout)


def _head(plan: Plan, layout: TextOptions) -> list[Text]:
    lines = wrapped("", say.subject(plan), layout, style="bold")
    if plan.fits or plan.cheapest or plan.budget:
        return lines  # what was searched for is the answer; a row is but its end
    for sentence, rows in zip(say.verdicts(plan), by_card(plan).values(), strict=True):
        lines += wrapped("", sentence, layout, style=_style_of(rows))
    if not plan.rows:
        lines += wrapped("", "nothing was asked for", layout, style="yellow")
    return lines


def _style_of(rows: Sequence[Row]) -> str:
    fitting = sum(row.result.fits for row in rows)
    return "bold green" if fitting == len(rows) else "bold yellow" if fitting else "bold red"


def _conditions(plan: Plan, layout: TextOptions) -> list[Text]:
    asked, assumed = say.conditions(plan)
    cards = [say.card_sentence(plan, card).replace(" ", GLUE) for card in plan.cards]
    told = (
        ("card" if len(cards) == 1 else "cards", " · ".join(cards)),
        ("held", say.used_sentence(plan)),
        ("with", glued(asked)),
        ("by default", glued(assumed)),
    )
    return [line for label, text in told if text for line in wrapped(label, text, layout)]


def _matrix(plan: Plan, layout: TextOptions, order: str) -> Iterator[list[Text]]:
    """With several cards the verdicts side by side, then for each card its table, then what there is to explain."""
    tables = by_card(plan, order)
    if len(tables) > 1:
        yield from _side_by_side(plan, layout, order)
    told = {_PLACE, _MOSTLY}
    for card, rows in tables.items():
        lines = _rows(plan, rows, layout)
        told = {head for head in told if head in lines[0].plain}
        title = wrapped("", f"on {say.card_sentence(plan, card)}", layout, style="bold")
        yield (title if len(tables) > 1 else []) + lines
    yield _explained(plan, layout, order, told)


def _side_by_side(plan: Plan, layout: TextOptions, order: str) -> Iterator[list[Text]]:
    """The process totals, with as many cards beside each other as there is room for."""
    rows = combinations(plan, order)
    unit = unit_of(row.result.process_total_bytes for row in plan.rows)
    knobs = _knob_columns(plan, [each.turned for each in rows], layout)
    cards = [_card_column(card, rows, unit) for card in by_card(plan)]
    room = layout.width - len(INDENT) - sum(_width(each) + len(GAP) for each in knobs)
    for number, some in enumerate(_chunks(cards, room)):
        title = wrapped("", f"process total, {unit}", layout, style="dim") if not number else []
        yield [*title, *table([*knobs, *some], layout)]


def _card_column(card: str, rows: Sequence[Combination], unit: str) -> Column:
    results = [each.rows[card].result if card in each.rows else None for each in rows]
    cells = [_mark(result, unit) if result else "" for result in results]
    return Column(card, cells, styles=[_style(result.verdict) if result else "" for result in results])


def _chunks(columns: Sequence[Column], room: int) -> Iterator[list[Column]]:
    chunk: list[Column] = []
    for column in columns:
        if chunk and sum(_width(each) + len(GAP) for each in (*chunk, column)) - len(GAP) > room:
            yield chunk
            chunk = []
        chunk.append(column)
    yield chunk


def _width(column: Column) -> int:
    return max(map(len, (column.head, *column.cells)))


def _mark(result: Result, unit: str) -> str:
    """``21.30 fits``, ``118.40 no``, ``cannot run``."""
    total = say.in_unit(result.process_total_bytes, unit)
    return f"{total} {_word(result):<4}" if total else _word(result)


def _word(result: Result) -> str:
    return "no" if result.verdict == DOES_NOT_FIT else result.verdict


def _style(verdict: str) -> str:
    return _STYLES.get(verdict, "yellow")


def _rows(plan: Plan, rows: Sequence[Row], layout: TextOptions) -> list[Text]:
    """The rows of a card."""
    results = [row.result for row in rows]
    unit = unit_of(result.process_total_bytes for result in results)
    columns = [
        Column("row", [str(row.number) for row in rows]),
        *_knob_columns(plan, [row.turned for row in rows], layout),
        Column("allocated", [say.in_unit(each.peak_allocated_bytes, unit) for each in results], rank=2),
        Column("reserved", [say.in_unit(each.peak_reserved_bytes, unit) for each in results], rank=3),
        Column(f"total {unit}", [say.in_unit(each.process_total_bytes, unit) for each in results]),
        Column("change", [_change(plan, row, unit) for row in rows], rank=2),
        Column(
            "fits", list(map(_word, results)), right=False, styles=[_style(each.verdict) for each in results]
        ),
        Column(_MOSTLY, [_mostly(each, unit) for each in results], right=False, rank=4),
        Column(_PLACE, list(map(_place, results)), right=False, rank=5, least=24, wish=30),
    ]
    return table(columns, layout)


def _knob_columns(plan: Plan, turned: Sequence[Mapping[str, str]], layout: TextOptions) -> list[Column]:
    """One for each varied knob; one for all where there is no room for so many."""
    if len(plan.varied) * (_KNOB + len(GAP)) > max(layout.width - _REST, _KNOB + len(GAP)):
        cells = [say.position(plan, each) for each in turned]
        return [Column(" · ".join(plan.varied), cells, right=False, least=16, wish=40, cut=beginning)]
    return [
        Column(knob, [each.get(knob, "") for each in turned], right=False, least=6, wish=24, cut=beginning)
        for knob in plan.varied
    ]


def _change(plan: Plan, row: Row, unit: str) -> str:
    moved = change_of_total(plan, row)
    return "baseline" if row.baseline and len(plan.rows) > 1 else "" if moved is None else change(moved, unit)


def _mostly(result: Result, unit: str) -> str:
    """``activations 5.20``."""
    found = largest(result)
    return f"{plural(found[0])} {format_in(found[1], unit)}" if found else ""


def _place(result: Result) -> str:
    """``backward, layer1.0.conv1``."""
    return ", ".join(
        filter(None, [phase(result.phase) if result.phase else "", say.part_of_model(result.module)])
    )


def _explained(plan: Plan, layout: TextOptions, order: str, told: Collection[str]) -> list[Text]:
    """What is to be said of single combinations, beside the columns that were `told`."""
    found = [(each, _sentences(plan, each, told)) for each in combinations(plan, order)]
    found = [(each, sentences) for each, sentences in found if sentences]
    lines: list[Text] = []
    for each, sentences in found[:_EXPLAINED]:
        lines += _titled(plan, each, sentences, layout)
    if len(found) > _EXPLAINED:
        lines += wrapped(" ", f"and {len(found) - _EXPLAINED} more (--json has all)", layout, style="dim")
    return lines


def _titled(
    plan: Plan, each: Combination, sentences: list[tuple[str, str]], layout: TextOptions
) -> list[Text]:
    if len(plan.rows) == 1:
        return [line for label, sentence in sentences for line in wrapped(label, sentence, layout)]
    name, numbers = say.position(plan, each.turned), say.row_names(row.number for row in each.rows.values())
    beside = len(numbers) < LABEL
    lines = [] if beside else wrapped("", numbers, layout, style="dim")
    lines += wrapped(numbers if beside else " ", name, layout, style="bold")
    return lines + [line for label, sentence in sentences for line in wrapped(label, sentence, layout)]


def _sentences(plan: Plan, each: Combination, told: Collection[str]) -> list[tuple[str, str]]:
    """Labels and sentences: what is the same on all cards once, the rest of each card."""
    cards: dict[tuple[str, str], list[str]] = {}
    for kind in range(4):
        for card, row in each.rows.items():
            for told_of in _of_row(plan, row, told)[kind]:
                cards.setdefault(told_of, []).append(card)
    whole = len(each.rows)
    return [
        (label, sentence if len(named) == whole else f"{', '.join(named)}: {sentence}")
        for (label, sentence), named in cards.items()
    ]


def _of_row(plan: Plan, row: Row, told: Collection[str]) -> tuple[list[tuple[str, str]], ...]:
    """What is wrong with a row, what its peak is, why that is so, and what it costs."""
    trouble, peak = say.trouble(row.result), _at_peak(plan, row, told)
    alone = len(plan.rows) == 1
    return (
        [("verdict" if alone else " ", trouble)] if trouble else [],
        [("at the peak" if alone else " ", peak)] if peak else [],
        [(" ", sentence) for sentence in say.why(row)[:1]],
        [("  costs", price) for price in say.price(row)],
    )


def _at_peak(plan: Plan, row: Row, told: Collection[str]) -> str:
    """What the peak consists of, for a row that stands alone; else what moved; and where it is, unless told."""
    place = "" if _PLACE in told else say.peak_place(row.result)
    highest = f"highest {place}" if place else ""
    if row.baseline or len(plan.rows) == 1:
        return "; ".join(filter(None, [_baseline(plan, row), highest]))
    most = None if _MOSTLY in told else largest(row.result)
    mostly = f"mostly {plural(most[0])} ({format_bytes(most[1])})" if most else ""
    return "; ".join(filter(None, [say.changed(plan, row), ", ".join(filter(None, [highest, mostly]))]))


def _baseline(plan: Plan, row: Row) -> str:
    parts = glued(say.consists(row.result))
    return parts if len(plan.rows) == 1 else ": ".join(filter(None, ["baseline", parts]))


def _searches(plan: Plan, layout: TextOptions) -> list[Text]:
    return [line for label, text, style in _found(plan) for line in wrapped(label, text, layout, style)]


def _found(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """What the searches came to: a label, a sentence and its style."""
    for fit in plan.fits:
        yield "largest", f"{_for(plan, fit.card, fit.turned)}{say.fit_sentence(fit)}", "bold"
        if conditions := say.fit_conditions(fit):
            yield " ", conditions, ""
    for found in plan.cheapest:
        yield "smallest card", f"{_for(plan, '', found.turned)}{say.cheapest_sentence(found)}", "bold"
        yield from ((" ", say.candidate(each), "") for each in found.tried if each.card != found.card)
    if plan.budget is not None:
        yield "budget", say.budget_sentence(plan.budget), "bold"
        yield from _ways(plan.budget.ways, "")
        yield from _ways(plan.budget.nearest, "nearest: ")


def _ways(ways: Sequence[Way], prefix: str) -> Iterator[tuple[str, str, str]]:
    for number, way in enumerate(ways, 1):
        yield f"{number:>4}", f"{prefix}{say.way_sentence(way)}", ""
        yield from (("  costs", price, "") for price in way.price)


def _for(plan: Plan, card: str, turned: Mapping[str, str]) -> str:
    parts = [card if len(plan.cards) > 1 else "", say.position(plan, turned) if turned else ""]
    told = ", ".join(filter(None, parts))
    return f"{told}: " if told else ""


def _facts(plan: Plan, layout: TextOptions) -> list[Text]:
    notes = say.notes(plan)
    more = [f"and {len(notes) - _LISTED} more (--json has all)"] if len(notes) > _LISTED else []
    told = [
        *layout.facts,
        ("on", glued(say.ran_on(plan))),
        ("took", say.effort(plan)),
        ("rests on", "; ".join([*notes[:_LISTED], *more])),
    ]
    return [*labelled(told, layout), *command_lines(layout)]
