"""The analyses of a run as JSON, ``vramscope.show/1`` (docs/show.md)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from vramscope.analysis.peak import Peak
from vramscope.run.run import Run
from vramscope.run.trace import Trace

SHOW_SCHEMA = "vramscope.show/1"


def show_json(run: Run, trace: Trace | None, views: Mapping[str, object]) -> str:
    """The views by their names, two spaces of indent, with a line end; what is not known is null."""
    document = {
        "schema": SHOW_SCHEMA,
        "name": run.name,
        "origin": run.origin,
        "process": None if trace is None else trace.pid,
        "device": None if trace is None else trace.device,
        **{name: values(view) for name, view in views.items()},
    }
    return json.dumps(document, indent=2) + "\n"


def values(found: object) -> Any:
    """An analysis as JSON values: its dataclasses as objects, its columns as lists."""
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        told = {each.name: values(getattr(found, each.name)) for each in dataclasses.fields(found)}
        return {**told, **_sums(found)}
    if isinstance(found, np.ndarray):
        return found.tolist()
    if isinstance(found, Mapping):
        return {str(key): values(each) for key, each in found.items()}
    if isinstance(found, (tuple, list)):
        return [values(each) for each in found]
    return found


def _sums(found: object) -> dict[str, int | None]:
    """What a peak knows beside its fields."""
    if not isinstance(found, Peak):
        return {}
    return {"cached_bytes": found.cached_bytes, "process_total_bytes": found.process_total_bytes}
