"""A whole Run as JSON for other programs, ``vramscope.export/1`` (docs/export.md)."""

from __future__ import annotations

import json
from typing import Any

from vramscope.run.categories import CATEGORIES
from vramscope.run.curves import allocated_curve, peak_moment, reserved_curve
from vramscope.run.run import Run
from vramscope.run.schema import report_to_dict
from vramscope.run.tables import tables_to_dict, trace_to_dict
from vramscope.run.trace import BLOCK_TYPES, SEGMENT_TYPES, Tables, Trace
from vramscope.views.finite import finite

EXPORT_SCHEMA = "vramscope.export/1"


def run_json(run: Run) -> str:
    """The file's text: compact, as it is long; what is not known is null."""
    return json.dumps(finite(run_values(run)), separators=(",", ":"), allow_nan=False) + "\n"


def run_values(run: Run) -> dict[str, Any]:
    """The run as JSON values."""
    import vramscope

    tables: list[Tables] = []
    for trace in run.traces:
        if not any(trace.tables is known for known in tables):
            tables.append(trace.tables)
    return {
        "schema": EXPORT_SCHEMA,
        "vramscope": vramscope.__version__,
        "name": run.name,
        "origin": run.origin,
        "report": None if run.report is None else report_to_dict(run.report),
        "categories": list(CATEGORIES),
        "tables": [_tables(each) for each in tables],
        "traces": [_trace(trace, _place(tables, trace)) for trace in run.traces],
    }


def _place(tables: list[Tables], trace: Trace) -> int:
    return next(number for number, each in enumerate(tables) if each is trace.tables)


def _tables(tables: Tables) -> dict[str, Any]:
    return {**tables_to_dict(tables), "stacks": [list(stack) for stack in tables.stacks]}


def _trace(trace: Trace, tables: int) -> dict[str, Any]:
    return {
        **trace_to_dict(trace, tables),
        "peak_allocated_moment": peak_moment(trace),
        "times_us": trace.times_us.tolist(),
        "allocated_bytes": allocated_curve(trace).tolist(),
        "reserved_bytes": reserved_curve(trace).tolist(),
        "blocks": {name: getattr(trace.blocks, name).tolist() for name in BLOCK_TYPES},
        "segments": {name: getattr(trace.segments, name).tolist() for name in SEGMENT_TYPES},
    }
