"""How PyTorch's allocator takes memory from the card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.technique import Knob, Technique

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"
"""Read by all releases; the newer PYTORCH_ALLOC_CONF only by recent ones."""


def _expandable(argument: str, script: Script, work: Work) -> None:
    script.environment[VARIABLE] = "expandable_segments:True"


ALLOCATOR = Knob(
    "allocator",
    "How the allocator takes memory from the card",
    "default",
    (
        Technique("default", "segments of fixed sizes, in which holes may stay"),
        Technique(
            "expandable",
            "segments that grow page by page (expandable_segments)",
            _expandable,
            price="nothing in most programs; cannot be shared with other processes",
            intrusion=1,
        ),
    ),
)
