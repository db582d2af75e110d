"""The tables of a trace, as the page's script draws them: columns with a kind, and rows of plain values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vramscope.analysis.layers import Layer, Layers, Sizes
from vramscope.analysis.stages import MARKS, Stages, Stretch

Spec = dict[str, Any]
"""What script/table.js takes; ``{"text": …}`` is a sentence where there is no table."""

_LAYER_COLUMNS = (
    ("Parameters", "count", "parameters", "Elements"),
    ("Weights", "bytes", "weight_bytes", "The parameters' blocks on this card"),
    ("Gradients", "bytes", "gradient_bytes", "At the moment when most are held"),
    ("Optimizer", "bytes", "optimizer_state_bytes", "Its states, as exp_avg"),
    (
        "Activations",
        "bytes",
        "activation_bytes",
        "Kept for backward, at the highest point of the steady step",
    ),
    (
        "Scratch",
        "bytes",
        "scratch_peak_bytes",
        "Temporaries and workspaces at their highest; no sum over layers",
    ),
    ("At the peak", "bytes", "peak_bytes", "Of all categories, at the allocated peak"),
)


def layer_tables(found: Layers) -> list[Spec]:
    """The tree of modules, each row followed by those below it, with what no module is known for at the end."""
    if not found.roots:
        return [{"text": "No module is known of any block."}]
    listed = [(layer, depth) for root in found.roots for layer, depth in _walk(root, 0)]
    rows = [[layer.path, layer.kind, *_figures(layer.total)] for layer, _ in listed]
    depths = [depth for _, depth in listed]
    columns = [{"label": "Module", "kind": "path"}, {"label": "Class", "kind": "text"}]
    columns += [{"label": label, "kind": kind, "title": title} for label, kind, _, title in _LAYER_COLUMNS]
    return [
        {
            "caption": "Memory by module, with what is below it",
            "columns": columns,
            "rows": [*rows, ["outside of modules", "", *_figures(found.elsewhere)]],
            "depths": [*depths, 0],
            "search": True,
            "bars": [len(columns) - 1],
        }
    ]


def _walk(layer: Layer, depth: int) -> Iterator[tuple[Layer, int]]:
    yield layer, depth
    for child in layer.children:
        yield from _walk(child, depth + 1)


def _figures(sizes: Sizes) -> list[int]:
    return [getattr(sizes, name) for _, _, name, _ in _LAYER_COLUMNS]


_STAGE_COLUMNS: tuple[Spec, ...] = (
    {"label": "Stage", "kind": "stage"},
    {"label": "Kept", "kind": "bytes", "title": "Allocated at its end"},
    {"label": "Peak allocated", "kind": "bytes"},
    {"label": "Change", "kind": "change", "title": "What it added to allocated"},
    {"label": "Reserved", "kind": "bytes", "title": "At its end"},
    {"label": "Peak reserved", "kind": "bytes"},
    {"label": "Allocations", "kind": "count", "title": "Blocks given out"},
)


def stage_tables(found: Stages, *, clock: bool) -> list[Spec]:
    """The stages, by the program's marks or by phases; `clock`: the host's times mean something."""
    stages = [(stretch, stage) for stretch in found.stretches for stage in stretch.stages]
    if not stages:
        return [{"text": "No stages were recorded."}]
    marks = found.by == MARKS
    columns = [*_STAGE_COLUMNS, *([{"label": "Time", "kind": "time", "none": "unknown"}] if clock else [])]
    rows = []
    for _, stage in stages:
        name = stage.name if marks else stage.name.replace("_", " ")
        times = f" × {stage.times:,}" if stage.times > 1 else ""
        row = [f"{name or 'after the last mark'}{times}", stage.allocated_bytes, stage.peak_allocated_bytes]
        row += [stage.change_bytes, stage.reserved_bytes, stage.peak_reserved_bytes, stage.allocations]
        rows.append([*row, *([stage.time_us] if clock else []), stage.first, stage.end])
    spec: Spec = {
        "caption": f"Stages by {'the marks of the program' if marks else 'phase'}",
        "columns": columns,
        "rows": rows,
        "bars": [2, 1],
        "groups": [[heading(stretch), len(stretch.stages)] for stretch in found.stretches],
    }
    return [{**spec, "marked": _row_of(found)}]


def heading(stretch: Stretch) -> str:
    """Which part of the run a stretch is; "" for the whole of it."""
    step = "" if stretch.step is None else f"step {stretch.step}"
    match stretch.kind:
        case "first":
            return step
        case "steady":
            return f"{step}, the last whole one"
        case "highest":
            return f"{step}, the highest"
        case "cut":
            return f"{step}, broken off" if step else "broken off"
        case "after":
            return f"after {step}"
    return ""


def _row_of(found: Stages) -> int | None:
    """The row in which allocated peaks."""
    if found.peak is None:
        return None
    stretch, place = found.peak
    return sum(len(each.stages) for each in found.stretches[:stretch]) + place
