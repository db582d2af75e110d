"""Formulas for the terminal: the sheet of a number of parameters, and single formulas worked out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from vramscope.theory.formula import Formula
from vramscope.theory.schemes import scheme_of
from vramscope.theory.states import states_of
from vramscope.theory.training import Sheet, Training
from vramscope.units import format_bytes, format_gb, format_in, unit_for
from vramscope.views import formula_words as say
from vramscope.views.paragraphs import TextOptions, joined, wrapped
from vramscope.views.tables import Column, beginning, table

_LONGEST_LABEL = 14


def formulas_text(found: Sequence[Formula], options: TextOptions | None = None) -> Text:
    """Formulas of the catalogue, one after the other."""
    layout = options or TextOptions()
    return joined((formula_lines(each, layout) for each in found), layout)


def list_text(found: Sequence[tuple[str, str, str]], options: TextOptions | None = None) -> Text:
    """What formulas there are: name, what it is of, how it is asked for."""
    layout = options or TextOptions()
    blocks = [
        [
            *wrapped("", name, layout, style="bold"),
            *wrapped("", summary, layout),
            *wrapped("", _breakable(usage), layout, style="dim"),
        ]
        for name, summary, usage in found
    ]
    told = "bytes=… may be a type: bf16, fp32. Figures may be written 4k, 6.7B, 11e9."
    return joined([*blocks, wrapped("", told, layout)], layout)


def sheet_text(found: Sheet, options: TextOptions | None = None) -> Text:
    """All of the sheet."""
    layout = options or TextOptions()
    blocks = [
        _head(found, layout),
        *_weights(found, layout),
        *_parts(found, layout),
        *_matrix(found, layout),
        *_claims(found, layout),
        *_sharding(found, layout),
        *_loading(found, layout),
        *_step(found, layout),
    ]
    return joined(blocks, layout)


def beside(label: str, text: str, layout: TextOptions, style: str = "") -> list[Text]:
    """The text beside its label, or below one that is too long."""
    if len(label) <= _LONGEST_LABEL:
        return wrapped(label or " ", text, layout, style)
    return [*wrapped("", label, layout, style="dim"), *wrapped(" ", text, layout, style)]


def formula_lines(each: Formula, layout: TextOptions) -> list[Text]:
    """A formula with its figures, values, assumption and source."""
    lines = wrapped("", each.name, layout, style="bold")
    told = [
        ("for", say.given(each.given)),
        ("formula", each.expression),
        *(say.value(metric, found) for metric, found in each.values.items()),
        ("assumes", each.assumption),
        ("source", each.source),
    ]
    metrics = {say.value(metric, found)[0] for metric, found in each.values.items()}
    for label, text in told:
        if text:
            lines += beside(label, text, layout, "bold" if label in metrics else "")
    return lines


def _breakable(usage: str) -> str:
    """A line may end behind a comma."""
    return usage.replace(",", ", ").replace(":", ": ", 1).replace(": ", ":", 1)


def _title(text: str, layout: TextOptions) -> list[Text]:
    return wrapped("", text, layout, style="bold")


def _head(found: Sheet, layout: TextOptions) -> list[Text]:
    told = "Tensors alone: without activations, workspaces, rounding and the CUDA context (see --model)."
    return _title(say.sheet_subject(found), layout) + wrapped("", told, layout)


def _weights(found: Sheet, layout: TextOptions) -> Iterator[list[Text]]:
    sizes = [int(each.values["weight_bytes"] or 0) for each in found.weights]
    unit = unit_for(max(sizes))
    columns = [
        Column("weights", [_short(each.name) for each in found.weights], right=False),
        Column("formula", [each.expression for each in found.weights], right=False, rank=2, style="dim"),
        Column(unit, [format_in(size, unit) for size in sizes], style="bold"),
        Column("GB", [format_gb(size) for size in sizes]),
        *_of_card(found, sizes),
    ]
    yield table(columns, layout)
    yield _grounds(((_short(each.name), each.assumption, each.source) for each in found.weights), layout)


def _short(name: str) -> str:
    return name.removeprefix("weights in ").removesuffix(" (QLoRA)")


def _of_card(found: Sheet, sizes: Sequence[int | None]) -> list[Column]:
    """What the card would be filled to."""
    if not found.card_bytes:
        return []
    shares = [None if size is None else size / found.card_bytes for size in sizes]
    cells = ["" if share is None else f"{100 * share:,.0f} %" for share in shares]
    styles = ["red" if share is not None and share > 1 else "green" for share in shares]
    return [Column("of the card", cells, styles=styles)]


def _grounds(rows: Iterable[tuple[str, str, str]], layout: TextOptions) -> list[Text]:
    """Assumptions and sources, one after the other."""
    labels: dict[str, list[str]] = {}
    for label, assumption, source in rows:
        labels.setdefault(say.resting(assumption, source), []).append(label)
    return [line for text, names in labels.items() for line in beside(" · ".join(names), text, layout)]


def _parts(found: Sheet, layout: TextOptions) -> Iterator[list[Text]]:
    rows = found.parts
    unit = unit_for(max(each.total_bytes or each.weight_bytes for each in rows))

    def sizes(name: str) -> list[str]:
        figures = [getattr(each, name) for each in rows]
        return [
            "by shape" if figure is None else format_in(figure, unit) if figure else "" for figure in figures
        ]

    columns = [
        Column(f"training, {unit}", [each.scheme for each in rows], right=False),
        Column("bytes each", [say.per_parameter(each.per_parameter) for each in rows]),
        Column("weights", sizes("weight_bytes"), rank=3),
        Column("gradients", sizes("gradient_bytes"), rank=3),
        Column("copies", sizes("master_bytes"), rank=3),
        Column("states", sizes("state_bytes"), rank=3),
        Column("lasting", sizes("lasting_bytes"), style="bold"),
        Column("casts", sizes("cast_bytes"), rank=1),
        *_of_card(found, [each.lasting_bytes for each in rows]),
    ]
    yield _title(f"Training with {found.optimizer}", layout) + table(columns, layout)
    told = [(each.scheme, scheme_of(each.scheme)) for each in rows]
    lines = _grounds(
        ((name, f"{scheme.summary}. {scheme.assumption}", scheme.source) for name, scheme in told), layout
    )
    states = states_of(found.optimizer)
    yield lines + (
        [] if found.matrix else _grounds([_states_row(found.optimizer, states.expression)], layout)
    )


def _states_row(name: str, expression: str) -> tuple[str, str, str]:
    states = states_of(name)
    return name, f"States {expression}. {states.assumption}", states.source


def _matrix(found: Sheet, layout: TextOptions) -> Iterator[list[Text]]:
    """Every optimizer under each scheme."""
    if not found.matrix:
        return
    schemes = list(dict.fromkeys(each.scheme for each in found.matrix))
    optimizers = list(dict.fromkeys(each.optimizer for each in found.matrix))
    by_pair = {(each.scheme, each.optimizer): each for each in found.matrix}
    columns = [Column("optimizer", optimizers, right=False)]
    for number, scheme in enumerate(schemes):
        cells = [_lasting(by_pair[scheme, optimizer]) for optimizer in optimizers]
        columns.append(Column(scheme, cells, rank=1 if number > 2 else 0))
    yield _title("Bytes per parameter that last: weights, gradients, copies, states", layout) + table(
        columns, layout
    )
    told = "w is the bytes of an element of a state: 2 under half, else 4."
    rows = [_states_row(name, states_of(name).expression) for name in optimizers]
    yield wrapped("", told, layout) + _grounds(rows, layout)


def _lasting(each: Training) -> str:
    return say.per_parameter(each.per_parameter)


def _claims(found: Sheet, layout: TextOptions) -> Iterator[list[Text]]:
    rows = found.claims
    unit = unit_for(max(each.said_bytes for each in rows))
    columns = [
        Column("claim", [each.claim.name for each in rows], right=False),
        Column(
            "of", [each.claim.said for each in rows], right=False, rank=2, least=12, wish=24, cut=beginning
        ),
        Column("bytes each", [str(each.claim.per_parameter) for each in rows]),
        Column(unit, [format_in(each.said_bytes, unit) for each in rows], style="cyan"),
        Column("GB", [format_gb(each.said_bytes) for each in rows], rank=2),
        Column("PyTorch", [str(each.claim.pytorch) for each in rows]),
        Column(unit, [format_in(each.pytorch_bytes, unit) for each in rows], style="bold"),
    ]
    yield _title("What two blog articles claim, beside what PyTorch keeps (Adam)", layout) + table(
        columns, layout
    )
    yield _grounds(
        ((row.claim.name, f"{say.sum_of(row.claim)}. {row.claim.why}", row.claim.source) for row in rows),
        layout,
    )


def _sharding(found: Sheet, layout: TextOptions) -> Iterator[list[Text]]:
    sizes = [None if (size := each.values["rank_bytes"]) is None else int(size) for each in found.sharding]
    unit = unit_for(max((size or 0 for size in sizes), default=0))
    cells = ["by shape" if size is None else format_in(size, unit) for size in sizes]
    columns = [
        Column("way", [each.name for each in found.sharding], right=False),
        Column("formula", [each.expression for each in found.sharding], right=False, style="dim"),
        Column(f"{unit} a rank" if any(sizes) else "a rank", cells, style="bold"),
        *_of_card(found, sizes),
    ]
    scheme = found.parts[0].scheme
    title = f"On {found.ranks} ranks, {scheme} with {found.optimizer}: W weights, G gradients, O copies and states"
    yield _title(title, layout) + table(columns, layout)
    yield _grounds(((each.name, each.assumption, each.source) for each in found.sharding), layout)


def _loading(found: Sheet, layout: TextOptions) -> Iterator[list[Text]]:
    lines = _title(f"Loading a checkpoint of W, {found.parts[0].scheme}", layout)
    for each in found.loading:
        size = int(each.values["card_bytes"] or 0)
        lines += wrapped("", f"{each.name}: {each.expression} = {format_bytes(size)} on the card", layout)
        lines += wrapped(" ", say.grounds(each), layout)
    yield lines


def _step(found: Sheet, layout: TextOptions) -> Iterator[list[Text]]:
    if not found.step:
        return
    yield _title(
        "A step's operations, and the shortest time that a card allows for them", layout
    ) + step_lines(found.step, layout)


def step_lines(found: Sequence[Formula], layout: TextOptions) -> list[Text]:
    """Operations, rates and bounds: each with its value, then what they rest on."""
    metrics = [next(iter(each.values)) for each in found]
    told = [say.value(metric, each.values[metric])[1] for metric, each in zip(metrics, found, strict=True)]
    columns = [
        Column("step", [each.name for each in found], right=False),
        Column("", [text.partition(" (")[0] for text in told], style="bold"),
        Column("formula", [each.expression for each in found], right=False, rank=1, style="dim"),
    ]
    return table(columns, layout) + _grounds(
        ((each.name, each.assumption, each.source) for each in found), layout
    )
