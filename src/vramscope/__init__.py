"""vramscope: what a PyTorch program will do to a GPU's memory, measured on a card that isn't there.

    import vramscope
    report = vramscope.predict("train.py", "rtx-3060", arguments=["--batch-size", "90"])
    print(report.verdict, report.peaks.process_total_bytes)

Importing this imports neither torch nor anything of ours that is not asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vramscope.api import predict
    from vramscope.errors import VramscopeError
    from vramscope.run.report import Report

__version__ = "0.1.0"

__all__ = ["Report", "VramscopeError", "__version__", "mark", "predict"]

_HOMES = {
    "Report": "vramscope.run.report",
    "VramscopeError": "vramscope.errors",
    "predict": "vramscope.api",
}


def mark(text: str) -> None:
    """Writes `text` into the journal of the run that this program is part of; outside of one, nothing."""
    import json
    import os

    path = os.environ.get("VRAMSCOPE_JOURNAL")
    if path is None:
        return
    line = json.dumps({"pid": os.getpid(), "kind": "mark", "text": str(text)}) + "\n"
    journal = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(journal, line.encode())  # one write, so that lines of several processes never mix
    finally:
        os.close(journal)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'vramscope' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
