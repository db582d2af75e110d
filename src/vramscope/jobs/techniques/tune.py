"""Which parameters are trained."""

from __future__ import annotations

from vramscope.jobs.technique import Knob, Technique

TUNE = Knob(
    "tune", "Which parameters are trained", "full", (Technique("full", "all parameters"),), training_only=True
)
