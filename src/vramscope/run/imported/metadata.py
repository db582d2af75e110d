"""What a program attaches to its allocations: torch keeps a text with each (`user_metadata`).

An export of vramscope's writes there what it knows of a block, so that nothing is lost on the way back:
``category: activation; module: Net.conv1; phase: forward; step: 2``."""

from __future__ import annotations

from dataclasses import dataclass

from vramscope.run.categories import INDEX

PHASES = ("init", "forward", "backward", "optimizer_step", "zero_grad", "evaluation", "other")


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known of one block; what is not told is empty."""

    category: str = ""
    module: str = ""
    name: str = ""
    phase: str = ""
    step: int | None = None


def metadata_of(text: str) -> Metadata:
    """From the text of an allocation; one that no export wrote is taken for the block's name."""
    pairs = (part.partition(": ") for part in text.split("; "))
    told = {key: value for key, _, value in pairs}
    if told.get("category") not in INDEX:
        return Metadata(name=text)
    phase, step = told.get("phase", ""), told.get("step", "")
    return Metadata(
        told["category"],
        told.get("module", ""),
        told.get("name", ""),
        phase if phase in PHASES else "",
        int(step) if step.isascii() and step.isdigit() and len(step) < 10 else None,
    )


def metadata_text(told: Metadata) -> str:
    """The text that metadata_of reads."""
    step = "" if told.step is None else str(told.step)
    fields = ("category", "module", "name", "phase")
    pairs = [*((field, getattr(told, field)) for field in fields), ("step", step)]
    return "; ".join(f"{key}: {value}" for key, value in pairs if value)
