"""The staged measurement for the terminal: formula, prediction and what is known side by side, and why each jumps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from vramscope.lab.stages.value import Reading, Staged
from vramscope.units import format_in
from vramscope.views import stages_lab_words as say
from vramscope.views.figures import unit_of
from vramscope.views.paragraphs import TextOptions, command_lines, glued, joined, labelled, wrapped
from vramscope.views.tables import Bars, Column, table


def stages_lab_text(found: Sequence[Staged], options: TextOptions | None = None) -> Text:
    """One model after the other.  The options' commands are the last lines."""
    layout = options or TextOptions()
    blocks = [block for staged in found for block in _one(staged, layout)]
    blocks.append([*_together(found, layout), *command_lines(layout)])
    return joined(blocks, layout)


def _one(staged: Staged, layout: TextOptions) -> list[list[Text]]:
    unit = unit_of((each.predicted_bytes for each in staged.readings), fine=True)
    return [
        _head(staged, layout),
        _table(staged, layout, unit),
        _why(staged, layout, unit),
        _facts(staged, layout),
    ]


def _head(staged: Staged, layout: TextOptions) -> list[Text]:
    lines = wrapped("", glued(say.subject(staged)), layout, style="bold")
    lines += wrapped("", glued(say.summary(staged)), layout)
    if trouble := say.trouble(staged):
        lines += wrapped("", trouble, layout, style="bold red")
    return lines


def _table(staged: Staged, layout: TextOptions, unit: str) -> list[Text]:
    readings = staged.readings
    predicted = [each.predicted_bytes for each in readings]
    columns = [
        Column(unit, [each.stage for each in readings], right=False),
        Column("", [each.formula for each in readings], right=False, rank=2, style="dim"),
        Column("formula", _sizes((each.formula_bytes for each in readings), unit)),
        Column("predicted", _sizes(predicted, unit), style="bold"),
        Column("measured", _sizes((each.measured_bytes for each in readings), unit)),
        Column("published", _sizes((each.published_bytes for each in readings), unit), style="cyan"),
        Column(
            "error",
            [say.error(each) for each in readings],
            rank=1,
            styles=[_style(each) for each in readings],
        ),
    ]
    return table(columns, layout, Bars(predicted, max((each or 0 for each in predicted), default=0)))


def _sizes(sizes: Iterable[int | None], unit: str) -> list[str]:
    return ["" if size is None else format_in(size, unit) for size in sizes]


def _style(reading: Reading) -> str:
    """Green within two percent, yellow within ten."""
    off = abs(reading.error or 0)
    return "green" if off <= 0.02 else "yellow" if off <= 0.1 else "red"


def _why(staged: Staged, layout: TextOptions, unit: str) -> list[Text]:
    return [line for stage, text in say.jumps(staged, unit) for line in wrapped(stage, text, layout)]


def _facts(staged: Staged, layout: TextOptions) -> list[Text]:
    told = (
        ("activations", say.kept(staged)),
        ("per parameter", say.per_parameter(staged)),
        ("agreement", say.agreement([staged])),
        ("measured", _measured(staged)),
    )
    return labelled(told, layout)


def _together(found: Sequence[Staged], layout: TextOptions) -> list[Text]:
    """What is the same for all of them, or is of all of them."""
    versions = {name: version for staged in found for name, version in staged.versions.items()}
    told = (
        ("all of them", say.agreement(found) if len(found) > 1 else ""),
        *(("published", source) for source in dict.fromkeys(staged.published_in for staged in found)),
        ("on", glued(" · ".join(f"{name} {version}" for name, version in versions.items()))),
    )
    return labelled(told, layout)


def _measured(staged: Staged) -> str:
    broken = f"; it broke off: {staged.why_not_measured}" if staged.why_not_measured else ""
    return f"on this machine's {staged.measured_on}{broken}" if staged.measured_on else ""
