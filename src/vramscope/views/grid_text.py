"""A grid of trainings for the terminal: memory, speed and learning of each cell, and why it saved or did not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from vramscope.lab.grid import TRAINED, Epoch, Grid, Memory, Reading, Training
from vramscope.run.categories import plural
from vramscope.units import format_in
from vramscope.views import grid_words as say
from vramscope.views.figures import change, unit_of
from vramscope.views.paragraphs import TextOptions, command_lines, glued, joined, labelled, wrapped
from vramscope.views.plan_words import count
from vramscope.views.tables import Column, beginning, table

_TWO_NAMES = 76
"""Narrower tables have a cell's precision and tune in one column."""
_REASONS = 2
"""So many are told of a cell; --json has all."""
_EXPLAINED = 16
"""So many cells are explained."""
_LISTED = 5
"""So many notes are told."""


def grid_text(grid: Grid, options: TextOptions | None = None) -> Text:
    """All of it.  The options' commands are the last lines."""
    layout = options or TextOptions()
    blocks = [
        _head(grid, layout),
        _conditions(grid, layout),
        _predicted(grid, layout),
        _article(grid, layout),
        _measured(grid, layout),
        _learned(grid, layout),
        _explained(grid, layout),
        _facts(grid, layout),
    ]
    return joined(blocks, layout)


def _head(grid: Grid, layout: TextOptions) -> list[Text]:
    done = len(say.trained(grid))
    style = "bold green" if done == len(grid.cells) > 0 else "bold yellow" if done else "bold red"
    return [
        *wrapped("", say.subject(grid), layout, style="bold"),
        *wrapped("", say.verdict(grid), layout, style=style),
    ]


def _conditions(grid: Grid, layout: TextOptions) -> list[Text]:
    told = (("trained with", say.trained_with(grid)), ("predicted for", say.predicted_for(grid)))
    return [line for label, text in told for line in wrapped(label, glued(text), layout)]


def _predicted(grid: Grid, layout: TextOptions) -> list[Text]:
    """The predicted peaks."""
    found = [cell.predicted for cell in grid.cells]
    if not any(found):
        return []
    unit = unit_of(each.process_total_bytes for each in found if each)
    styles = ["red" if cell.predicted_fits is False else "" for cell in grid.cells]
    columns = [
        *_names(grid.cells, grid, layout),
        *_peaks(found, unit, styles),
        Column("change", [_change(grid, cell, unit) for cell in grid.cells], rank=1),
        Column("mostly", [_mostly(each, unit) for each in found], right=False, rank=4),
    ]
    title = wrapped("", f"memory, predicted for {say.predicted_for(grid)}", layout, style="dim")
    return [*title, *table(columns, layout), *_too_small(grid, layout)]


def _too_small(grid: Grid, layout: TextOptions) -> list[Text]:
    """The cells that need a larger card."""
    over = say.not_fitting(grid)
    if not over:
        return []
    verb = "does" if len(over) == 1 else "do"
    sentence = f"{say.numbered(over)} {verb} not fit {grid.card}; the figures say what they need"
    return wrapped("", sentence, layout, style="red")


def _article(grid: Grid, layout: TextOptions) -> list[Text]:
    """What the article read of its six cells, beside what is predicted of them, trained here or not."""
    cells = grid.article
    totals = [each.predicted.process_total_bytes if each.predicted else None for each in cells]
    if not any(totals):
        return []
    gaps = [say.apart(grid, each) for each in cells]
    columns = [
        *_names(cells, grid, layout),
        Column("read", [f"{each.nvitop_gb:.1f}" for each in cells]),
        Column("change", [say.signed(say.read_change(grid, each)) or "first" for each in cells], rank=3),
        Column("predicted", ["" if size is None else format_in(size, "GiB") for size in totals]),
        Column("change", [_reading_change(grid, each) for each in cells], rank=1),
        Column("apart", ["" if gap is None else f"{gap:.2f}" for gap in gaps], rank=2),
    ]
    title = "the article's cells: the process in GiB, as read in nvitop and as predicted"
    told = [say.agreement(grid), "what separates the levels: docs/lab-train.md", say.freezes_nothing(grid)]
    return [
        *wrapped("", title, layout, style="dim"),
        *table(columns, layout),
        *wrapped("", "; ".join(filter(None, told)), layout, style="dim"),
    ]


def _reading_change(grid: Grid, reading: Reading) -> str:
    found = say.reading_change(grid, reading)
    if found is None:
        return "first" if reading is grid.article[0] else ""
    return change(found, "GiB") or "same"


def _names(cells: Sequence[Training] | Sequence[Reading], grid: Grid, layout: TextOptions) -> list[Column]:
    """Cells by name, and by number where they are the grid's."""
    places = {say.name(cell): str(number) for number, cell in enumerate(grid.cells, 1)}
    number = Column("cell", [places.get(say.name(cell), "") for cell in cells])
    if layout.width < _TWO_NAMES:
        names = [say.name(cell) for cell in cells]
        return [number, Column("precision · tune", names, right=False, least=12, wish=25, cut=beginning)]
    return [
        number,
        Column("precision", [each.precision for each in cells], right=False, least=9, cut=beginning),
        Column("tune", [each.tune for each in cells], right=False, least=10, wish=14, cut=beginning),
    ]


def _peaks(found: Sequence[Memory | None], unit: str, styles: Sequence[str] = ()) -> list[Column]:
    def shown(metric: str) -> list[str]:
        sizes = [getattr(each, metric) if each else None for each in found]
        return ["" if size is None else format_in(size, unit) for size in sizes]

    return [
        Column("allocated", shown("allocated_bytes"), rank=2),
        Column("reserved", shown("reserved_bytes"), rank=2),
        Column(f"process {unit}", shown("process_total_bytes"), styles=styles),
    ]


def _change(grid: Grid, cell: Training, unit: str) -> str:
    found = say.process_change(grid, cell)
    if found is None:
        return "first" if cell is grid.cells[0] and len(grid.cells) > 1 else ""
    return change(found, unit) or "same"


def _mostly(memory: Memory | None, unit: str) -> str:
    found = say.most(memory)
    return f"{plural(found[0])} {format_in(found[1], unit)}" if found else ""


def _measured(grid: Grid, layout: TextOptions) -> list[Text]:
    """The measured peaks, with the predicted ones where the sizes are the same; or why there are none."""
    if sentence := say.measured(grid):
        return wrapped("measured", sentence, layout)
    found = [cell.measured for cell in grid.cells]
    unit = unit_of(each.process_total_bytes or each.reserved_bytes for each in found if each)
    columns = [*_names(grid.cells, grid, layout), *_peaks(found, unit)]
    if say.same_sizes(grid):
        totals = [cell.predicted.reserved_bytes if cell.predicted else None for cell in grid.cells]
        cells = ["" if size is None else format_in(size, unit) for size in totals]
        columns.append(Column("reserved, predicted", cells, rank=2))
    title = f"memory, measured on {grid.device} · batch {grid.batch} · image {grid.image}"
    return [*wrapped("", title, layout, style="dim"), *table(columns, layout)]


def _learned(grid: Grid, layout: TextOptions) -> list[Text]:
    """How fast, and what came of it."""
    ends = [say.last(cell) for cell in grid.cells]
    columns = [
        *_names(grid.cells, grid, layout),
        Column("s/step", [say.number(cell.seconds_per_step) for cell in grid.cells], rank=4),
        Column("bound", [say.number(cell.shortest_step_seconds) for cell in grid.cells], rank=4),
        Column("images/s", [say.number(cell.samples_per_second) for cell in grid.cells], rank=1),
        *_scores(ends),
        Column("trainable", list(map(_trainable, grid.cells)), rank=3),
    ]
    if not any(ends):
        verdicts = [cell.verdict for cell in grid.cells]
        columns = [*_names(grid.cells, grid, layout), Column("verdict", verdicts, right=False)]
    title = f"training on {grid.device} · batch {grid.batch} · image {grid.image} · after epoch {grid.epochs}"
    lines = [*wrapped("", title, layout, style="dim"), *table(columns, layout)] if grid.cells else []
    if any(cell.shortest_step_seconds for cell in grid.cells):
        lines += wrapped(
            "", "bound: seconds that the card's arithmetic alone needs for a step", layout, "dim"
        )
    return lines


def _scores(ends: Sequence[Epoch | None]) -> list[Column]:
    return [
        Column("loss", [say.number(each.train_loss) if each else "" for each in ends]),
        Column("accuracy", [say.percent(each.train_accuracy) if each else "" for each in ends], rank=2),
        Column("test loss", [say.number(each.test_loss) if each else "" for each in ends], rank=2),
        Column("test acc.", [say.percent(each.test_accuracy) if each else "" for each in ends]),
    ]


def _trainable(cell: Training) -> str:
    return "" if cell.trainable is None else count(cell.trainable)


def _explained(grid: Grid, layout: TextOptions) -> list[Text]:
    """Of each cell what moved and why, or why it was not trained."""
    told = [(number, cell, list(_sentences(grid, cell))) for number, cell in enumerate(grid.cells, 1)]
    told = [each for each in told if each[2]]
    lines: list[Text] = []
    for number, cell, sentences in told[:_EXPLAINED]:
        lines += wrapped(f"cell {number}", say.name(cell), layout, style="bold")
        lines += [line for text, style in sentences for line in wrapped(" ", text, layout, style=style)]
    if len(told) > _EXPLAINED:
        lines += wrapped(" ", f"and {len(told) - _EXPLAINED} more (--json has all)", layout, style="dim")
    return lines


def _sentences(grid: Grid, cell: Training) -> Iterator[tuple[str, str]]:
    if trouble := say.trouble(cell):
        yield trouble, "yellow"
    if cell is grid.cells[0] and (parts := say.consists(cell)):
        yield f"predicted: {glued(parts)}", ""
    if moved := say.changed(grid, cell):
        yield moved, ""
    yield from ((reason, "") for reason in say.why(grid, cell)[:_REASONS])


def _facts(grid: Grid, layout: TextOptions) -> list[Text]:
    more = [f"and {len(grid.notes) - _LISTED} more (--json has all)"] if len(grid.notes) > _LISTED else []
    versions = " · ".join(f"{name} {version}" for name, version in grid.versions.items())
    told = [
        *layout.facts,
        *(
            ("note" if not number else " ", note)
            for number, note in enumerate([*grid.notes[:_LISTED], *more])
        ),
        ("on", glued(versions)),
        ("known", say.reused(grid)),
        ("kept in", grid.kept_in if any(cell.verdict == TRAINED for cell in grid.cells) else ""),
    ]
    return [*labelled(told, layout), *command_lines(layout)]
