"""A trace without its columns, and its tables, as JSON values and back.

The stacks, by far the longest table, are not in it: they are two columns (`stack_columns`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from vramscope.errors import RunError
from vramscope.run.records import items, natural, settings, texts, to_objects, to_values, truth, wrong
from vramscope.run.trace import Column, Frame, Module, Optimizer, Span, Tables, Trace, no_blocks, no_segments


def tables_to_dict(tables: Tables) -> dict[str, Any]:
    """All but the stacks."""
    return {
        "modules": to_objects(tables.modules),
        "names": list(tables.names),
        "frames": to_objects(tables.frames),
        "optimizers": to_objects(tables.optimizers),
    }


def tables_from_dict(document: object, stacks: tuple[tuple[int, ...], ...], where: str) -> Tables:
    """The tables with these stacks; RunError for what `tables_to_dict` did not make."""
    values = _object(document, where)
    return Tables(
        modules=to_values(Module, values.get("modules"), f"{where} modules"),
        names=texts(values.get("names"), f"{where} names"),
        frames=to_values(Frame, values.get("frames"), f"{where} frames"),
        stacks=stacks,
        optimizers=to_values(Optimizer, values.get("optimizers"), f"{where} optimizers"),
    )


def stack_columns(stacks: tuple[tuple[int, ...], ...]) -> tuple[Column, Column]:
    """How deep each stack is, and the frames of all in one row."""
    depths = np.array([len(stack) for stack in stacks], np.int64)
    return depths, np.array([frame for stack in stacks for frame in stack], np.int64)


def stacks_of(depths: Column, frames: Column, where: str) -> tuple[tuple[int, ...], ...]:
    """The stacks that `stack_columns` made these of."""
    if (len(depths) and (depths.min() < 0 or depths.max() > len(frames))) or depths.sum() != len(frames):
        raise RunError(f"its {where} stacks are not as deep as they say: the run is damaged")
    ends, flat = np.cumsum(depths).tolist(), frames.tolist()
    return tuple(tuple(flat[end - depth : end]) for end, depth in zip(ends, depths.tolist(), strict=True))


def trace_to_dict(trace: Trace, tables: int) -> dict[str, Any]:
    """All but the columns; `tables` is the number that its tables are stored under."""
    return {
        "pid": trace.pid,
        "device": trace.device,
        "moments": trace.moments,
        "tables": tables,
        "spans": to_objects(trace.spans),
        "streams": list(trace.streams),
        "pools": [list(pool) for pool in trace.pools],
        "settings": trace.settings,
        "whole": trace.whole,
        "notes": list(trace.notes),
    }


def trace_from_dict(document: object, tables: tuple[Tables, ...], where: str) -> Trace:
    """The trace, with no rows yet; RunError for what `trace_to_dict` did not make."""
    values = _object(document, where)
    number = natural(values.get("tables"), f"{where} tables")
    if number >= len(tables):
        raise wrong(f"{where} tables", f"one of {len(tables)}", number)
    return Trace(
        pid=natural(values.get("pid"), f"{where} pid"),
        device=natural(values.get("device"), f"{where} device"),
        moments=natural(values.get("moments"), f"{where} moments"),
        times_us=np.empty(0, np.int64),
        blocks=no_blocks(),
        segments=no_segments(),
        spans=to_values(Span, values.get("spans"), f"{where} spans"),
        tables=tables[number],
        streams=tuple(natural(each, f"{where} streams") for each in _list(values, "streams", where)),
        pools=tuple(_pool(each, f"{where} pools") for each in _list(values, "pools", where)),
        settings=settings(values.get("settings"), f"{where} settings"),
        whole=truth(values.get("whole"), f"{where} whole"),
        notes=texts(values.get("notes"), f"{where} notes"),
    )


def _list(values: dict[str, Any], name: str, where: str) -> list[Any]:
    return items(values.get(name), f"{where} {name}")


def _pool(value: object, where: str) -> tuple[int, int]:
    pair = items(value, where)
    if len(pair) != 2:
        raise wrong(where, "pairs", value)
    return natural(pair[0], where), natural(pair[1], where)


def _object(document: object, where: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise wrong(where, "object", document)
    return document
