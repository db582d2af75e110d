"""The staged measurement as one value: what was asked for, what is reserved after each stage.  Views read this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from vramscope.planning.result import Failure

IMPORT, INPUT, MODEL, SECOND, OPTIMIZER, COUNT = (
    *("import", "input", "model", "second model", "optimizer"),
    "FLOPs count",
)
NO_GRAD, FORWARD, LOSS, BACKWARD, STEP, ZERO_GRAD = (
    *("no_grad forward", "forward", "loss", "backward", "step"),
    "zero_grad",
)
STAGES = (
    *(IMPORT, INPUT, MODEL, SECOND, OPTIMIZER, COUNT),
    *(NO_GRAD, FORWARD, LOSS, BACKWARD, STEP, ZERO_GRAD),
)
"""In the order of the program.  The second model is deleted after its reading."""


@dataclass(frozen=True, slots=True)
class Holds:
    """What reserved memory consists of at the moment of a reading; the three add up to it."""

    live: Mapping[str, int] = field(default_factory=dict)
    """By category, the bytes of the tensors that are there."""
    unused_bytes: int = 0
    """The free parts of segments that also hold a tensor: no empty_cache gives them back."""
    cached: Mapping[str, int] = field(default_factory=dict)
    """Segments that hold nothing, by the category of what lay in most of each since the reading before."""

    @property
    def reserved_bytes(self) -> int:
        """The sum."""
        return sum(self.live.values()) + self.unused_bytes + sum(self.cached.values())


@dataclass(frozen=True, slots=True)
class Reading:
    """`torch.cuda.memory_reserved()` after one stage, before the cache is emptied.  None: not known."""

    stage: str
    formula: str
    """The closed form in symbols: ``x + 4P + 4A``."""
    formula_bytes: int | None
    predicted_bytes: int | None = None
    measured_bytes: int | None = None
    """On this machine's own card."""
    published_bytes: int | None = None
    """Of the article."""
    holds: Holds | None = None
    """What the predicted one consists of; None: the program did not come so far, or used no card yet."""
    retries: int = 0
    """So often the predicted card was full during the stage, and the allocator gave its cache back."""

    @property
    def known_bytes(self) -> int | None:
        """What a prediction is held against: the measured reading, else the published one."""
        return self.published_bytes if self.measured_bytes is None else self.measured_bytes

    @property
    def error(self) -> float | None:
        """How far the prediction is off, as a share of what is known; None where nothing is or it is zero."""
        known = self.known_bytes
        if self.predicted_bytes is None or not known:
            return None
        return (self.predicted_bytes - known) / known


@dataclass(frozen=True, slots=True)
class Counted:
    """The size of the model's forward, as a library counted it in the program itself.  None: it does not count that."""

    by: str
    """fvcore or torch.utils.flop_counter."""
    flops: int | None
    unit: str
    """What one of them is: a multiply-add (fvcore), or a multiplication or an addition (torch)."""
    activations: int | None
    """Elements of what convolutions and matrix products put out."""


@dataclass(frozen=True, slots=True)
class Staged:
    """One model at one size."""

    source: str
    kind: str
    """The class of the model."""
    shapes: Mapping[str, int]
    """What the data look like, by the knobs' names: batch, and image or seq."""
    precision: str
    parameters: int
    card: str
    """The id of the virtual card."""
    capacity_bytes: int
    readings: tuple[Reading, ...]
    """All of STAGES, in their order."""
    counted: Counted | None
    """None: the program did not come so far."""
    activations: Mapping[str, int] = field(default_factory=dict)
    """What is kept for backward after the forward on the predicted card: bytes by the class of the module that asked;
    "" is none."""
    failure: Failure | None = None
    """The request that the predicted card had no room for; None: it had room for all."""
    why_not: str = ""
    """Why the predicted program broke off otherwise, as a sentence; "" if it did not."""
    measured_on: str = ""
    """The name of the real card; "" is none."""
    why_not_measured: str = ""
    """Why there is a card and the program did not come to its end on it; "" if it did, or if there is none."""
    published_in: str = ""
    """Where the published readings are from; "" if there are none."""
    versions: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """A plain value."""
        told = asdict(self)
        for reading, each in zip(told["readings"], self.readings, strict=True):
            reading["error"] = each.error
        return told
