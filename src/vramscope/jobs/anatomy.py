"""The structure of a module: its layers by class, its repeated blocks.  Knows modules by their methods alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

_CONTAINERS = ("ModuleList", "Sequential", "ModuleDict")
_LEAST_SHARE = 0.1
"""Blocks of a class that hold a smaller part of all blocks' parameters are ornaments."""


def layers(module: Any) -> Mapping[str, int]:
    """How many modules without children there are of each class, most first."""
    leaves = (type(each).__name__ for each in module.modules() if not any(each.children()))
    return dict(Counter(leaves).most_common())


def parameters(module: Any) -> int:
    """Elements of its parameters, shared ones once."""
    return sum(each.numel() for each in module.parameters())


def blocks(module: Any) -> tuple[str, ...]:
    """Paths of the repeated blocks in the order in which they are registered, which is that of the forward."""
    found = list(_blocks(module, ""))
    weights: Counter[str] = Counter()
    for _, block in found:
        weights[type(block).__name__] += parameters(block)
    least = _LEAST_SHARE * sum(weights.values())
    counts = Counter(type(block).__name__ for _, block in found)
    kept = {name for name, weight in weights.items() if weight >= least and counts[name] > 1}
    return tuple(path for path, block in found if type(block).__name__ in kept)


def _blocks(module: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The children of containers and stages whose children are of one class that is itself made of parts."""
    children = [(f"{path}.{name}" if path else name, child) for name, child in module.named_children()]
    if (_is_container(module) or _is_stage(module)) and _alike([child for _, child in children]):
        yield from children
        return
    for place, child in children:
        yield from _blocks(child, place)


def _alike(children: list[Any]) -> bool:
    classes = {type(child) for child in children}
    return len(classes) == 1 and _is_block(children[0])


def _is_block(module: Any) -> bool:
    """Not a single layer, not a container, not a stage, whose blocks are further in."""
    return any(module.children()) and not _is_container(module) and not _is_stage(module)


def _is_stage(module: Any) -> bool:
    return "stage" in type(module).__name__.lower()


def _is_container(module: Any) -> bool:
    return any(kind.__name__ in _CONTAINERS for kind in type(module).__mro__)
