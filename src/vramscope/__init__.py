"""vramscope: what a PyTorch program will do to a GPU's memory, measured on a card that isn't there.

    import vramscope
    report = vramscope.predict("train.py", "rtx-3060", arguments=["--batch-size", "90"], save="train.vram")
    print(report.verdict, report.peaks.process_total_bytes)
    for finding in vramscope.explain(vramscope.load("train.vram")):
        print(finding.question, finding.answer)

Importing this imports neither torch nor anything of ours that is not asked for."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vramscope.api import compare, explain, load, measure, plan, predict
    from vramscope.api.formulas import formula, formula_model, formula_sheet
    from vramscope.api.laboratory import lab_train
    from vramscope.api.stages import lab_stages
    from vramscope.errors import VramscopeError
    from vramscope.jobs.job import Job
    from vramscope.run.report import Report
    from vramscope.run.run import Run

__version__ = "0.1.0"

__all__ = [
    "Job",
    "Report",
    "Run",
    "VramscopeError",
    "__version__",
    "compare",
    "explain",
    "formula",
    "formula_model",
    "formula_sheet",
    "lab_stages",
    "lab_train",
    "load",
    "mark",
    "measure",
    "plan",
    "predict",
]

_HOMES = {
    "Job": "vramscope.jobs.job",
    "Report": "vramscope.run.report",
    "Run": "vramscope.run.run",
    "VramscopeError": "vramscope.errors",
    "compare": "vramscope.api",
    "explain": "vramscope.api",
    "formula": "vramscope.api.formulas",
    "formula_model": "vramscope.api.formulas",
    "formula_sheet": "vramscope.api.formulas",
    "lab_stages": "vramscope.api.stages",
    "lab_train": "vramscope.api.laboratory",
    "load": "vramscope.api",
    "measure": "vramscope.api",
    "plan": "vramscope.api",
    "predict": "vramscope.api",
}


def mark(text: str) -> None:
    """Ends a stage of the program and names it: ``mark("model built")``; outside of vramscope, nothing.

    The stages are a row each of `vramscope show RUN --stages`."""
    recorder = sys.modules.get("vramscope.recording.memory")
    if recorder is not None:
        recorder.mark(str(text))


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'vramscope' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
