"""A run of a million events without a program: one training step of a ResNet-50's shape, again and again.

The step's requests go through a small caching allocator (best fit, split, merge) until they lie where they
lay in the step before; that step is then repeated with NumPy, each time with other clock readings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from vramscope.run.categories import INDEX
from vramscope.run.run import Run
from vramscope.run.trace import (
    BACKWARD,
    BLOCK_TYPES,
    GRAD,
    SEGMENT_TYPES,
    Blocks,
    Column,
    Frame,
    Module,
    Optimizer,
    Segments,
    Span,
    Tables,
    Trace,
)

MIB = 1 << 20
LAYERS = 53
"""Convolutions of a ResNet-50, each with its batch norm."""
PHASES = ("forward", "backward", "optimizer_step", "zero_grad")
_FIELDS = tuple(BLOCK_TYPES)


def million_run(events: int = 1_000_000) -> Run:
    """A run of about so many events (never fewer); its sums close."""
    found, last = _Recorder(), 0
    found.init()
    while last < 2 or not found.settled:
        last, before, rows, pieces = last + 1, found.moment, len(found.rows), len(found.pieces)
        found.train(last)
        found.settled = len(found.pieces) == pieces
    more = max(0, -(-(events - found.moment) // (found.moment - before)))
    return Run(None, traces=(_repeated(found, before, rows, last, more),), name="million")


@dataclass
class _Cache:
    """A caching allocator: pieces of segments, free ones by address."""

    segments: list[tuple[int, int]] = field(default_factory=list)
    free: dict[int, int] = field(default_factory=dict)
    home: dict[int, int] = field(default_factory=dict)

    def take(self, size: int) -> tuple[int, int, bool]:
        """The address and segment of a piece, and whether the segment is new."""
        fitting = [(length, address) for address, length in self.free.items() if length >= size]
        fresh = not fitting
        if fresh:
            length = size if size > 10 * MIB else 2 * MIB if size <= MIB else 20 * MIB
            address = 0x7F0000000000 + sum(each + MIB for _, each in self.segments)
            self.segments.append((address, length))
            self.free[address], self.home[address] = length, len(self.segments) - 1
            fitting = [(length, address)]
        length, address = min(fitting)
        del self.free[address]
        segment = self.home[address]
        if length > size:
            self.free[address + size], self.home[address + size] = length - size, segment
        return address, segment, fresh

    def give(self, address: int, size: int) -> None:
        after = address + size
        if self.home.get(after) == self.home[address]:
            size += self.free.pop(after, 0)
        before = [first for first, length in self.free.items() if first + length == address]
        if before and self.home[before[0]] == self.home[address]:
            self.free[before[0]] += size
        else:
            self.free[address] = size


class _Recorder:
    """Events as the recorder would have them."""

    def __init__(self) -> None:
        self.cache = _Cache()
        self.moment = 0
        self.settled = False
        self.rows: list[dict[str, int]] = []
        self.pieces: list[dict[str, int]] = []
        self.spans: list[Span] = []
        self.names = [""]
        self.modules = [Module("")]
        self.frames: list[Frame] = []
        self.stacks: list[tuple[int, ...]] = [()]
        self._stacks: dict[object, int] = {}
        for layer in range(LAYERS):
            for kind, size in (("Conv2d", self.weights(layer)), ("BatchNorm2d", self.width(layer) * 8)):
                path = f"ResNet.layer{layer // 14 + 1}.{layer % 14}.{kind}"
                self.modules.append(Module(path, kind, size // 4, size, size // 4, size))

    @staticmethod
    def width(layer: int) -> int:
        return 64 << (layer // 14)

    @classmethod
    def weights(cls, layer: int) -> int:
        return cls.width(layer) ** 2 * (9 if layer % 3 == 1 else 4) * 4

    @classmethod
    def output(cls, layer: int) -> int:
        return 90 * cls.width(layer) * (56 >> (layer // 14)) ** 2 * 4

    def span(self, phase: str, step: int) -> None:
        self.spans.append(Span(self.moment, phase, step, None, self.stack(phase, 0)))

    def stack(self, phase: str, layer: int) -> int:
        """A stack of twelve frames, its own for each phase and layer."""
        if (phase, layer) not in self._stacks:
            first = len(self.frames)
            places = [
                ("torch/nn/modules/conv.py", layer),
                ("timm/models/resnet.py", layer),
                ("train.py", len(phase)),
            ]
            self.frames += [
                Frame(file, line, f"{phase}_{layer}", file == "train.py") for file, line in places
            ]
            shared = tuple(range(min(9, len(self.frames))))
            self.stacks.append((first, first + 1, *shared, first + 2))
            self._stacks[phase, layer] = len(self.stacks) - 1
        return self._stacks[phase, layer]

    def alloc(self, size: int, category: str, module: int = 0, phase: str = "init", name: str = "") -> int:
        rounded = -(-size // 512) * 512
        address, segment, fresh = self.cache.take(rounded)
        if fresh:
            place, length = self.cache.segments[segment]
            values = {"address": place, "size_bytes": length, "small": length == 2 * MIB}
            self.pieces.append({**dict.fromkeys(SEGMENT_TYPES, 0), **values, "born": self.moment})
            self.moment += 1
        if name and name not in self.names:
            self.names.append(name)
        flags = {"forward": GRAD, "backward": BACKWARD}.get(phase, 0)
        self.rows.append(
            {
                **dict.fromkeys(_FIELDS, 0),
                "address": address,
                "requested_bytes": size,
                "size_bytes": rounded,
                "segment": segment,
                "born": self.moment,
                "freed": -1,
                "category": INDEX[category],
                "module": module,
                "name": self.names.index(name),
                "stack": self.stack(phase, module),
                "flags": flags,
            }
        )
        self.moment += 1
        return len(self.rows) - 1

    def free(self, row: int) -> None:
        block = self.rows[row]
        block["freed"] = self.moment
        self.cache.give(block["address"], block["size_bytes"])
        self.moment += 1

    def scratch(self, size: int, category: str, module: int, phase: str) -> None:
        self.free(self.alloc(size, category, module, phase))

    def init(self) -> None:
        self.span("init", 1)
        for number, module in enumerate(self.modules[1:], 1):
            for part in ("weight", "bias"):
                size = module.parameter_bytes // (1 if module.kind == "Conv2d" else 2)
                self.alloc(size, "parameter", number, "init", f"{module.path}.{part}")
                if module.kind == "Conv2d":
                    break

    def train(self, step: int) -> None:
        """Forward, backward, Adam by the foreach path and zero_grad."""
        self.span("forward", step)
        given = self.alloc(90 * 3 * 224 * 224 * 4, "input", 0, "forward")
        kept: list[tuple[int, int, int]] = []
        for number in range(1, 2 * LAYERS + 1):
            layer = (number - 1) // 2
            if self.modules[number].kind == "Conv2d":
                self.scratch(self.output(layer) // 3, "workspace", number, "forward")
            else:
                kept += [(self.alloc(self.width(layer) * 4, "activation", number, "forward"), number, 0)] * 1
                kept += [(self.alloc(self.width(layer) * 4, "activation", number, "forward"), number, 0)]
            kept.append((self.alloc(self.output(layer), "activation", number, "forward"), number, 1))
        self.span("backward", step)
        grads = []
        for row, number, large in reversed(kept):
            module, layer = self.modules[number], (number - 1) // 2
            if large:
                result = self.alloc(self.output(layer), "temporary", number, "backward")
                self.scratch(self.output(layer) // 2, "workspace", number, "backward")
                parts = 1 if module.kind == "Conv2d" else 2
                grads += [
                    self.alloc(
                        module.parameter_bytes // parts,
                        "gradient",
                        number,
                        "backward",
                        f"{module.path}.weight",
                    )
                    for _ in range(parts)
                ]
                self.free(result)
            self.free(row)
        self.span("optimizer_step", step)
        weights = [block for block in self.rows if block["category"] == INDEX["parameter"]]
        if step == 1:
            for state in ("exp_avg", "exp_avg_sq"):
                for block in weights:
                    name = f"{self.names[block['name']]} {state}"
                    self.alloc(
                        block["requested_bytes"], "optimizer_state", block["module"], "optimizer_step", name
                    )
        for _ in range(2):
            updates = [
                self.alloc(b["requested_bytes"], "temporary", b["module"], "optimizer_step") for b in weights
            ]
            for row in updates:
                self.free(row)
        self.span("zero_grad", step)
        for row in grads:
            self.free(row)
        self.free(given)

    def tables(self) -> Tables:
        adam = Optimizer("Adam", sum(each.parameters for each in self.modules), None, None, {"lr": 0.001})
        return Tables(tuple(self.modules), tuple(self.names), tuple(self.frames), tuple(self.stacks), (adam,))


def _repeated(found: _Recorder, before: int, rows: int, last: int, more: int) -> Trace:
    """The trace with its last step, which began at moment `before` and row `rows`, so many times more."""
    length = found.moment - before
    moments = found.moment + more * length
    blocks = {name: np.array([row[name] for row in found.rows], np.int64) for name in _FIELDS}
    turns = np.repeat(np.arange(1, more + 1) * length, len(found.rows) - rows)
    blocks = {
        name: np.concatenate(
            [values, np.tile(values[rows:], more) + (turns if name in ("born", "freed") else 0)]
        )
        for name, values in blocks.items()
    }
    blocks["freed"] = np.where(blocks["freed"] < 0, moments, blocks["freed"])
    blocks["returned"] = blocks["freed"]
    segments = {name: np.array([piece[name] for piece in found.pieces], np.int64) for name in SEGMENT_TYPES}
    segments["freed"][:] = moments
    clock = np.random.default_rng(0).integers(3, 90, moments).cumsum() + 1_790_000_000_000_000
    return Trace(
        pid=1,
        device=0,
        moments=moments,
        times_us=clock.astype(np.int64),
        blocks=Blocks(**_typed(blocks, BLOCK_TYPES)),
        segments=Segments(**_typed(segments, SEGMENT_TYPES)),
        spans=_spans(found.spans, last, length, more, clock),
        tables=found.tables(),
    )


def _spans(spans: list[Span], last: int, length: int, more: int, clock: Column) -> tuple[Span, ...]:
    repeated = [
        replace(span, first=span.first + turn * length, step=last + turn)
        for turn in range(1, more + 1)
        for span in spans
        if span.step == last
    ]
    return tuple(replace(span, time_us=int(clock[span.first])) for span in [*spans, *repeated])


def _typed(columns: dict[str, Column], kinds: dict[str, str]) -> dict[str, Column]:
    return {name: columns[name].astype(kind) for name, kind in kinds.items()}
