"""Keeping activations in the machine's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.technique import Knob, Technique

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def _activations(argument: str, script: Script, work: Work) -> None:
    script.contexts.append("torch.autograd.graph.save_on_cpu(pin_memory=True)")


OFFLOAD = Knob(
    "offload",
    "What waits in the machine's memory instead of the card's",
    "off",
    (
        Technique("off", "everything stays on the card"),
        Technique(
            "activations",
            "what the backward needs goes to pinned memory and comes back (save_on_cpu)",
            _activations,
            price="every activation crosses the bus twice: often several times slower",
            intrusion=6,
        ),
    ),
    training_only=True,
)
