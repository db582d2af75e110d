"""What a workload's model is, as far as a program that trains it must know; found by building it once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

CLASSIFICATION = "image-classification"
DETECTION = "detection"
CAUSAL_LM = "causal-lm"
MASKED_LM = "masked-lm"
SEQ2SEQ = "seq2seq"
DIFFUSION = "diffusion"
INFERENCE = "inference"
GENERATE = "generate"
CUSTOM = "custom"
TRAINING = (CLASSIFICATION, DETECTION, CAUSAL_LM, MASKED_LM, SEQ2SEQ, DIFFUSION, CUSTOM)
"""The tasks that step an optimizer; CUSTOM is that of a `vramscope.Job`."""
TASKS = (*TRAINING, INFERENCE, GENERATE)


@dataclass(frozen=True, slots=True)
class Facts:
    """A model on paper.  None and empty: it has no such thing."""

    tasks: tuple[str, ...]
    """What can be done with it, the usual first."""
    kind: str = ""
    """The class of the outermost module."""
    parameters: int = 0
    """Elements."""
    image: int | None = None
    """The side of the images that it was made for, in pixels."""
    channels: int = 3
    classes: int | None = None
    vocabulary: int | None = None
    positions: int | None = None
    """The longest sequence that it was made for, in tokens."""
    layers: Mapping[str, int] = field(default_factory=dict)
    """How many modules of each class it has: Linear, Conv2d, BatchNorm2d …"""
    blocks: tuple[str, ...] = ()
    """Paths of its repeated blocks in the order of the forward: layer1.0, layer1.1 …"""
    modules: int = 0
    """How many modules it has, itself included."""
    abilities: tuple[str, ...] = ()
    """Methods and switches that techniques use: gradient_checkpointing, set_grad_checkpointing, sdpa, flash …"""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Other figures of its config that a task needs: sizes of a UNet's inputs, a token's number."""

    def to_json(self) -> dict[str, Any]:
        """A plain value."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Facts:
        """The facts of a plain value."""
        lists = {"tasks", "blocks", "abilities"}
        known = {each.name for each in fields(cls)}
        kept: dict[str, Any] = {
            key: tuple(item) if key in lists else item for key, item in value.items() if key in known
        }
        return cls(**kept)
