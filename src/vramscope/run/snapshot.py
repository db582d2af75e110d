"""A memory snapshot of torch's as a Run: a file of ``torch.cuda.memory._dump_snapshot``, of torch 2.1 and later.

A snapshot has the allocator's state when it was taken, and the events before as far as they were recorded
and still fitted into its ring.  What it cannot tell, the trace's notes say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from vramscope.errors import RunError
from vramscope.run.curves import allocated_curve
from vramscope.run.imported.file import dump_of
from vramscope.run.imported.history import traces_of
from vramscope.run.imported.places import clean
from vramscope.run.run import IMPORTED, Run
from vramscope.run.soundness import require_sound
from vramscope.run.unpickle import read_pickle, uncollected


def import_snapshot(path: str | os.PathLike[str]) -> Run:
    """The Run in a snapshot file; RunError if it is none, and nothing in it is ever executed."""
    return run_of(read_pickle(path), Path(path).stat().st_size, Path(path).name)


def run_of(data: Any, size: int, name: str) -> Run:
    """The Run in what was unpickled from a file of `size` bytes."""
    try:
        with uncollected():
            traces = traces_of(dump_of(data, size))
        for trace in traces:
            require_sound(trace, f"cuda:{trace.device}")
    except RunError as error:
        raise RunError(f"{name} cannot be imported: {error}") from error
    traces.sort(key=lambda trace: -int(allocated_curve(trace).max(initial=0)))
    return Run(None, traces=tuple(traces), origin=IMPORTED, name=clean(name))
