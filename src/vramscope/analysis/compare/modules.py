"""Which module of one run is which of the other, and how what they hold differs.

Wrappers come and go between two runs (peft's ``base_model.model.``, DDP's ``module.``, a model within a
larger one), so a path is matched by its end: first with one prefix for a whole model, then, for what
is left, by the longest end that no other module has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add

from vramscope.analysis.compare.figures import Held, ModulePair
from vramscope.analysis.layers import Layers, Sizes, every_layer

Path = tuple[str, ...]
Owned = dict[Path, Held]
"""What each module holds itself, without those below it."""

TRANSPARENT = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "base_layer"}
"""Wrappers that hold one module and nothing else: DDP, torch.compile, FSDP, checkpointing, peft's layers.
What they wrap counts as they."""
ALIKE = 0.02
"""Numbered siblings are told together if their figures differ by no more than this share of what they hold."""
_WHOLE_MODEL = 0.5
"""A module with at least this share of all modules below it may be the whole model of the other run."""


def module_pairs(a: Layers, b: Layers) -> tuple[ModulePair, ...]:
    """Trees from the outermost modules on, as one of no name; empty unless both know modules."""
    ours, theirs = owned(a), owned(b)
    if not ours or not theirs:
        return ()
    renamed = matched(list(ours), list(theirs))
    moved: Owned = {}
    for path, held in theirs.items():
        place = renamed.get(path, path)
        moved[place] = moved.get(place, Held()) + held
    return (_tree(ours, moved),)


def owned(layers: Layers) -> Owned:
    """The modules by path, without the outermost class if there is one only, and without wrappers.

    Outermost modules that hold nothing, as the activation functions that a library makes when it is
    imported, are left out."""
    roots = [root for root in layers.roots if root.total != Sizes()]
    skipped = 1 if len(roots) == 1 else 0
    found: Owned = {}
    for layer in every_layer(roots):
        parts = layer.path.split(".")[skipped:]
        path = tuple(part for part in parts if part not in TRANSPARENT)
        found[path] = found.get(path, Held()) + _held(layer.own)
    return found


def matched(ours: Sequence[Path], theirs: Sequence[Path]) -> dict[Path, Path]:
    """For each of their modules the path that it has in ours, as far as there is one."""
    whole, same = _best_prefixes(ours, theirs)
    found = {path: whole + path[len(same) :] for path in theirs if _within(path, same)}
    found |= {path: whole for path in theirs if _within(same, path)}  # what is wrapped around it
    known, taken = set(ours), {found.get(path, path) for path in theirs}
    left = [path for path in theirs if found.get(path, path) not in known]
    return found | _by_longest_end([path for path in ours if path not in taken], left)


def _held(sizes: Sizes) -> Held:
    return Held(sizes.activation_bytes, sizes.weight_bytes, sizes.gradient_bytes, sizes.optimizer_state_bytes)


def _best_prefixes(ours: Sequence[Path], theirs: Sequence[Path]) -> tuple[Path, Path]:
    """The module of each that, taken for the same, makes most modules agree; the outermost ones of equals."""
    known = set(ours)

    def agreeing(pair: tuple[Path, Path]) -> int:
        one, other = pair
        return sum(one + path[len(other) :] in known for path in theirs if _within(path, other))

    pairs = [(one, other) for one in _wholes(ours) for other in _wholes(theirs) if not one or not other]
    return max(pairs, key=lambda pair: (agreeing(pair), -len(pair[0]) - len(pair[1])))


def _wholes(paths: Sequence[Path]) -> list[Path]:
    """The modules that may be the whole model, outermost first."""
    below: dict[Path, int] = {}
    for path in paths:
        for depth in range(len(path) + 1):
            below[path[:depth]] = below.get(path[:depth], 0) + 1
    return [path for path, count in below.items() if count >= _WHOLE_MODEL * len(paths)]


def _within(path: Path, above: Path) -> bool:
    return path[: len(above)] == above


def _by_longest_end(ours: Sequence[Path], theirs: Sequence[Path]) -> dict[Path, Path]:
    """Pairs whose paths end alike for at least two names, in no other way; longest ends first."""
    found: dict[Path, Path] = {}
    longest = max(map(len, (*ours, *theirs)), default=0)
    for length in range(longest, 1, -1):
        mine, other = (_ends(paths, length) for paths in (ours, theirs))
        for end in mine.keys() & other.keys():
            if len(mine[end]) == len(other[end]) == 1:
                found[other[end][0]] = mine[end][0]
        ours = [path for path in ours if path not in found.values()]
        theirs = [path for path in theirs if path not in found]
    return found


def _ends(paths: Iterable[Path], length: int) -> dict[Path, list[Path]]:
    found: dict[Path, list[Path]] = {}
    for path in paths:
        if len(path) >= length:
            found.setdefault(path[-length:], []).append(path)
    return found


@dataclass(slots=True)
class _Node:
    a: Held | None = None
    b: Held | None = None
    children: dict[str, _Node] = field(default_factory=dict)


def _tree(ours: Mapping[Path, Held], theirs: Mapping[Path, Held]) -> ModulePair:
    root = _Node()
    for side, paths in (("a", ours), ("b", theirs)):
        for path, held in paths.items():
            node = root
            for part in path:
                node = node.children.setdefault(part, _Node())
            setattr(node, side, held)
    return _pair((), root)


def _pair(path: Path, node: _Node) -> ModulePair:
    """With the figures of all below it."""
    children = [_pair((*path, name), child) for name, child in node.children.items()]
    a = _sum([node.a, *(child.a for child in children)])
    b = _sum([node.b, *(child.b for child in children)])
    return ModulePair(".".join(path), a, b, tuple(_folded(children)))


def _sum(parts: Iterable[Held | None]) -> Held | None:
    known = [part for part in parts if part is not None]
    return reduce(add, known) if known else None


def _folded(siblings: Sequence[ModulePair]) -> Iterator[ModulePair]:
    """Neighbours in a list of modules that changed alike, as one."""
    run: list[ModulePair] = []
    for each in siblings:
        if run and not _continues(run, each):
            yield _together(run)
            run = []
        run.append(each)
    if run:
        yield _together(run)


def _continues(run: Sequence[ModulePair], each: ModulePair) -> bool:
    names = [pair.path.rpartition(".")[2] for pair in (run[-1], each)]
    if not all(name.isdigit() for name in names) or int(names[1]) != int(names[0]) + 1:
        return False
    return _alike(run[0].a, each.a) and _alike(run[0].b, each.b)


def _alike(one: Held | None, other: Held | None) -> bool:
    if one is None or other is None:
        return one is other
    most = ALIKE * max(one.total_bytes, other.total_bytes)
    return all(abs(x - y) <= most for x, y in zip(one.figures(), other.figures(), strict=True))


def _together(run: Sequence[ModulePair]) -> ModulePair:
    first, last = run[0], run[-1]
    if first is last:
        return first
    a, b = _sum(each.a for each in run), _sum(each.b for each in run)
    below = [[child.path.rpartition(".")[2] for child in each.children] for each in run]
    alike = all(names == below[0] for names in below)
    children = (
        [_together(each) for each in zip(*(pair.children for pair in run), strict=True)] if alike else []
    )
    return ModulePair(first.path, a, b, tuple(children), len(run), last.path)
