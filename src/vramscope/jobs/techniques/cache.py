"""The cache of keys and values while tokens are generated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.facts import GENERATE
from vramscope.jobs.technique import Knob, Technique

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def _static(argument: str, script: Script, work: Work) -> None:
    script.model += [
        'generation.cache_implementation = "static"',
        "generation.disable_compile = True  # generate would compile the model for a static cache",
    ]


def _refuses(argument: str, work: Work) -> str | None:
    return None if work.task == GENERATE else f"task={work.task} keeps no keys and values"


CACHE = Knob(
    "cache",
    "The cache of keys and values while tokens are generated",
    "dynamic",
    (
        Technique("dynamic", "it grows with every token, each time into new memory"),
        Technique(
            "static",
            "it has its whole length from the beginning",
            _static,
            _refuses,
            price="its whole length is taken at once; what comes back is the same",
            intrusion=1,
        ),
    ),
)
