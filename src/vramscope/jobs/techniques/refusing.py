"""Sentences with which techniques refuse that several of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vramscope.jobs.work import Work


def standing(work: Work, **positions: str) -> str | None:
    """``knob=position`` of the first knob that stands on the named technique: `standing(work, tune="qlora")`.

    Underscores in knobs' names stand for hyphens; several techniques have ``|`` between them."""
    for name, names in positions.items():
        position = work.recipe[name.replace("_", "-")]
        if position.partition(":")[0] in names.split("|"):
            return f"{name.replace('_', '-')}={position}"
    return None


def against(work: Work, why: str, **positions: str) -> str | None:
    """``it does not go with knob=position: why``, if one of the knobs stands on one of the techniques."""
    other = standing(work, **positions)
    return f"it does not go with {other}: {why}" if other else None


def without_layers(work: Work, *classes: str) -> str | None:
    """That the model has no layer of any of the classes, by the ends of their names."""
    if any(name.endswith(classes) for name in work.facts.layers):
        return None
    return f"{work.source.text} ({work.facts.kind}) has no {' or '.join(classes)} layers"
