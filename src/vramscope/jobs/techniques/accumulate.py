"""How many micro-batches make a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.technique import Knob, Maths, Technique, whole_number

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def _write(argument: str, script: Script, work: Work) -> None:
    script.accumulate = int(argument)


ACCUMULATE = Knob(
    "accumulate",
    "Micro-batches in a step",
    "1",
    (
        Technique(
            "n",
            "the gradients of n micro-batches are added up before the optimizer steps",
            _write,
            maths=Maths.ORDER,
            price="n times as many samples in a step, or n smaller forwards; batch norm sees micro-batches",
            intrusion=2,
        ),
    ),
    number=whole_number("accumulate"),
    training_only=True,
)
