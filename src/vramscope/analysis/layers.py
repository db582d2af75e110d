"""Memory by module: the tree of the model with what each layer holds, keeps for backward, and needs besides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from vramscope.analysis.lookup import BEFORE, steady_moments, sums
from vramscope.run.categories import (
    ACTIVATION,
    GRADIENT,
    INDEX,
    OPTIMIZER_STATE,
    PARAMETER,
    TEMPORARY,
    WORKSPACE,
)
from vramscope.run.curves import allocated_curve, live_at, peak_moment
from vramscope.run.report import Report
from vramscope.run.trace import Blocks, Column, Module, Trace

_DEEPEST = 100
"""Levels of modules; what is deeper is counted with what it lies in."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a module holds; each category at the moment at which all modules together hold most of it."""

    parameters: int = 0
    """Elements, as the next one."""
    trainable: int = 0
    parameter_bytes: int = 0
    """The tensors' own, as the next two; on whichever device they are."""
    trainable_bytes: int = 0
    buffer_bytes: int = 0
    weight_bytes: int = 0
    """The blocks of its parameters on this card, rounded as the allocator does."""
    gradient_bytes: int = 0
    optimizer_state_bytes: int = 0
    activation_bytes: int = 0
    """Kept for backward, at the highest point of the steady step."""
    peak_bytes: int = 0
    """Of all categories, at the allocated peak."""
    scratch_peak_bytes: int = 0
    """The highest sum of its temporaries and workspaces in the steady step.  The only figure of which a total
    is no sum: two layers need theirs one after the other."""

    def __add__(self, other: Sizes) -> Sizes:
        """The figures of both; of scratch memory the higher one."""
        both = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(Sizes)}
        both["scratch_peak_bytes"] = max(self.scratch_peak_bytes, other.scratch_peak_bytes)
        return Sizes(**both)


@dataclass(frozen=True, slots=True)
class Layer:
    """A module and what is below it."""

    path: str
    kind: str
    own: Sizes
    """Without its children."""
    total: Sizes
    children: tuple[Layer, ...] = ()
    notes: tuple[str, ...] = ()
    copies: int = 1
    """So many siblings of the same build are told together, in `total`; see `folding.folded`."""
    last: str = ""
    """The path of the last of them."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Layers:
    """The modules of one trace."""

    roots: tuple[Layer, ...]
    """The outermost modules; empty where no module is known, as in a snapshot."""
    elsewhere: Sizes
    """What no module is known for."""
    total: Sizes
    peak_moment: int
    allocated_bytes: int
    """At that moment: the `peak_bytes` of all roots and of `elsewhere` sum to it."""
    activation_moment: int
    """At which most activations were kept."""

    def check(self) -> tuple[str, ...]:
        """The sums that do not close, as sentences; empty when all is well."""
        found = sum(root.total.peak_bytes for root in self.roots) + self.elsewhere.peak_bytes
        if found == self.allocated_bytes:
            return ()
        return (f"the layers sum to {found} at the peak, allocated is {self.allocated_bytes}",)


def layers(trace: Trace, report: Report | None = None) -> Layers:
    """The tree of modules; those of the same path (two models of one class) are one.

    `report` tells which steps were cut off, so that the steady step is a whole one."""
    tree = _Tree(trace.tables.modules)
    window = steady_moments(trace, report)
    highest = peak_moment(trace)
    at_peak = BEFORE if highest is None else highest
    activation_moment = _highest(trace, ACTIVATION, window)
    columns = {
        **tree.told,
        "weight_bytes": _held(trace, tree, PARAMETER, _highest(trace, PARAMETER, window)),
        "gradient_bytes": _held(trace, tree, GRADIENT, _highest(trace, GRADIENT, window)),
        "optimizer_state_bytes": _held(
            trace, tree, OPTIMIZER_STATE, _highest(trace, OPTIMIZER_STATE, window)
        ),
        "activation_bytes": _held(trace, tree, ACTIVATION, activation_moment),
        "peak_bytes": _held(trace, tree, None, at_peak),
    }
    own_scratch, scratch = _scratch(trace, tree, window)
    own = tree.sizes({**columns, "scratch_peak_bytes": own_scratch})
    total = tree.sizes(
        {**{name: tree.summed(column) for name, column in columns.items()}, "scratch_peak_bytes": scratch}
    )
    roots = tuple(tree.layer(node, own, total) for node in tree.children[0])
    return Layers(
        roots=roots,
        elsewhere=own[0],
        total=total[0],
        peak_moment=at_peak,
        allocated_bytes=int(columns["peak_bytes"].sum()),
        activation_moment=activation_moment,
    )


class _Tree:
    """The nodes: 0 is "no module", the others are every path and what lies above it."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.numbers: dict[str, int] = {"": 0}
        self.parents = [0]
        self.children: list[list[int]] = [[]]
        self.depths = [0]
        self.of_module = np.array([self._node(_within_depth(each.path)) for each in modules], np.int64)
        self.paths = list(self.numbers)
        self.kinds = [""] * len(self.paths)
        self.notes: list[tuple[str, ...]] = [()] * len(self.paths)
        for module, node in zip(modules, self.of_module, strict=True):
            self.kinds[node], self.notes[node] = module.kind, module.notes
        self.told = {
            name: sums(
                self.of_module, np.array([getattr(each, name) for each in modules], np.int64), len(self.paths)
            )
            for name in ("parameters", "trainable", "parameter_bytes", "trainable_bytes", "buffer_bytes")
        }

    def _node(self, path: str) -> int:
        """The number of a path; those above it come first, so that a parent's number is always the lower one."""
        if path in self.numbers:
            return self.numbers[path]
        parent = self._node(path.rpartition(".")[0])
        number = self.numbers[path] = len(self.numbers)
        self.parents.append(parent)
        self.depths.append(self.depths[parent] + 1)
        self.children.append([])
        self.children[parent].append(number)
        return number

    def summed(self, own: Column) -> Column:
        """For each node the sum of its own and of all below it."""
        found: Column = own.copy()
        for node in range(len(found) - 1, 0, -1):
            found[self.parents[node]] += found[node]
        return found

    def above(self, depth: int) -> Column:
        """For each node the one of that depth at or above it; -1 for those that are higher up."""
        depths, parents = np.array(self.depths), np.array(self.parents)
        found: Column = np.arange(len(self.paths))
        for deeper in range(max(self.depths), depth, -1):
            found = np.where(depths[found] == deeper, parents[found], found)
        found[depths < depth] = -1
        return found

    def sizes(self, columns: dict[str, Column]) -> list[Sizes]:
        """The figures of each node."""
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [Sizes(**dict(zip(columns, row, strict=True))) for row in rows]

    def layer(self, node: int, own: Sequence[Sizes], total: Sequence[Sizes]) -> Layer:
        """A node with all below it."""
        below = tuple(self.layer(child, own, total) for child in self.children[node])
        return Layer(self.paths[node], self.kinds[node], own[node], total[node], below, self.notes[node])


def _within_depth(path: str) -> str:
    return ".".join(path.split(".", _DEEPEST)[:_DEEPEST])


def _highest(trace: Trace, category: str, window: tuple[int, int]) -> int:
    """The moment within a window at which a category's bytes are highest."""
    first, end = window
    if end <= first:
        return BEFORE
    curve = allocated_curve(trace, trace.blocks.category == INDEX[category])
    return first + int(np.argmax(curve[first:end]))


def _held(trace: Trace, tree: _Tree, category: str | None, moment: int) -> Column:
    """int64[nodes], the bytes of a category (None: of all) that are live at a moment."""
    rows = live_at(trace, moment)
    if category is not None:
        rows = rows[trace.blocks.category[rows] == INDEX[category]]
    return sums(tree.of_module[trace.blocks.module[rows]], trace.blocks.size_bytes[rows], len(tree.paths))


def _scratch(trace: Trace, tree: _Tree, window: tuple[int, int]) -> tuple[Column, Column]:
    """For each node the highest sum of temporaries and workspaces: its own, and with all below it."""
    moments, change, nodes = _scratch_events(trace.blocks, tree, window)
    order = np.argsort(moments, kind="stable")
    change, nodes = change[order], nodes[order]
    own = _highest_sums(nodes, change, len(tree.paths))
    total = own.copy()
    for depth in range(max(tree.depths) + 1):
        group = tree.above(depth)[nodes]
        within = _highest_sums(group[group >= 0], change[group >= 0], len(tree.paths))
        total = np.maximum(total, within)
    total[0] = _highest_sums(np.zeros(len(nodes), np.int64), change, 1)[0]
    return own, total


def _scratch_events(blocks: Blocks, tree: _Tree, window: tuple[int, int]) -> tuple[Column, Column, Column]:
    """Births and frees of scratch blocks within a window: moments, changes in bytes, nodes."""
    first, end = window
    scratch = np.isin(blocks.category, [INDEX[TEMPORARY], INDEX[WORKSPACE]])
    rows = np.flatnonzero(scratch & (blocks.born < end) & (blocks.freed > first))
    freed = rows[blocks.freed[rows] < end]
    sizes, nodes = blocks.size_bytes, tree.of_module[blocks.module]
    return (
        np.concatenate([np.maximum(blocks.born[rows], first - 1), blocks.freed[freed]]),
        np.concatenate([sizes[rows], -sizes[freed]]),
        np.concatenate([nodes[rows], nodes[freed]]),
    )


def _highest_sums(groups: Column, change: Column, length: int) -> Column:
    """int64[length], for each group the highest running sum of its changes, which are in order of time."""
    found = np.zeros(length, np.int64)
    if not len(groups):
        return found
    order = np.argsort(groups, kind="stable")
    groups, change = groups[order], change[order]
    starts = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
    running = np.cumsum(change)
    before = running[starts] - change[starts]
    found[groups[starts]] = np.maximum.reduceat(running, starts) - before
    return found


def every_layer(roots: Iterable[Layer]) -> Iterable[Layer]:
    """All modules of the trees, parents first."""
    for root in roots:
        yield root
        yield from every_layer(root.children)
