"""What optimizers keep for each parameter, as their code makes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vramscope.errors import UsageError

_LEAST_8BIT = 4096
"""Elements below which 8-bit optimizers keep fp32 states: bitsandbytes' min_8bit_size, torchao's _new_buffer."""
_BLOCK = 256
"""Elements that share a scale, in both."""
_MAP_BYTES = 256 * 4
"""A table from 8-bit codes to fp32."""

Shape = Sequence[int]


@dataclass(frozen=True, slots=True)
class States:
    """An optimizer's states."""

    name: str
    """As the knob `optimizer` has it."""
    expression: str
    """Bytes per parameter; w: the bytes of an element of a gradient."""
    per_parameter: Callable[[int], float | None]
    """For an element's bytes (w); None: it depends on the shapes."""
    of_shape: Callable[[Shape, int], int]
    """The bytes for a parameter of a shape, and w."""
    once: int = 0
    """Bytes beside, whatever the number of parameters."""
    assumption: str = ""
    source: str = ""


def _count(shape: Shape) -> int:
    return math.prod(shape)


def _times(number: int) -> Callable[[Shape, int], int]:
    return lambda shape, width: number * width * _count(shape)


def _in_fp32(number: int) -> Callable[[Shape, int], int]:
    return lambda shape, width: number * 4 * _count(shape)


def _bnb_8bit(shape: Shape, width: int) -> int:
    count = _count(shape)
    return 8 * count if count < _LEAST_8BIT else 2 * (count + 4 * -(-count // _BLOCK))


def _torchao_8bit(shape: Shape, width: int) -> int:
    count = _count(shape)
    if count < _LEAST_8BIT or count % _BLOCK:
        return 2 * width * count
    return 2 * (count + 4 * count // _BLOCK + _MAP_BYTES)


def _adafactor(shape: Shape, width: int) -> int:
    """A row and a column of each matrix of the last two dimensions; the whole of a vector."""
    if len(shape) < 2:
        return width * _count(shape)
    return width * (_count(shape) // shape[-1] + _count(shape) // shape[-2])


def _muon(shape: Shape, width: int) -> int:
    return (1 if len(shape) == 2 else 2) * width * _count(shape)


_EIGHT = 2 * (1 + 4 / _BLOCK)
_STEP = "Adam's count of steps lies on the host unless the optimizer is fused or capturable."
STATES = (
    States("sgd", "0", lambda w: 0, _times(0), 0, "No momentum.", "torch/optim/sgd.py: SGD._init_group"),
    States(
        *("momentum", "w", lambda w: w, _times(1), 0),
        "The buffer is a copy of the first gradient, in its type.",
        "torch/optim/sgd.py: _single_tensor_sgd, momentum_buffer",
    ),
    States("adam", "2 w", lambda w: 2 * w, _times(2), 0, _STEP, "torch/optim/adam.py: Adam._init_group"),
    States("adamw", "2 w", lambda w: 2 * w, _times(2), 0, _STEP, "torch/optim/adamw.py: AdamW(Adam)"),
    States(
        *("adamw-8bit", "2 (1 + 4/256)", lambda w: _EIGHT, _bnb_8bit, 2 * _MAP_BYTES),
        f"Tensors of fewer than {_LEAST_8BIT:,} elements keep fp32 states; two tables of codes stand beside.",
        "bitsandbytes/optim/optimizer.py: Optimizer2State.init_state; Dettmers et al. 2022, 8-bit Optimizers",
    ),
    States(
        *("adamw-8bit-torchao", "2 (1 + 4/256)", lambda w: _EIGHT, _torchao_8bit, 0),
        f"Tensors of fewer than {_LEAST_8BIT:,} elements, or of no multiple of {_BLOCK}, keep states of their type; "
        "each state of another has a table of codes.",
        "torchao/optim/adam.py: _AdamBase._new_buffer; torchao/optim/subclass_8bit.py: OptimState8bit.zeros",
    ),
    States(
        *("adafactor", "w (rows + columns) / (rows · columns)", lambda w: None, _adafactor, 0),
        "No first moment (torch.optim's); a convolution's kernels are matrices each.",
        "torch/optim/_adafactor.py: Adafactor._init_group; Shazeer and Stern 2018",
    ),
    States(
        *("lion", "4", lambda w: 4, _in_fp32(1), 0),
        "One momentum, in fp32 whatever the parameter's type.",
        "bitsandbytes/optim/optimizer.py: Optimizer1State.init_state; Chen et al. 2023",
    ),
    States(
        *("muon", "w for matrices, 2 w for the rest", lambda w: w, _muon, 0),
        "All parameters are matrices inside the model; embeddings, heads and vectors are AdamW's, with 2 w.",
        "torch/optim/_muon.py: Muon._init_group",
    ),
)
_PAGED = {"adamw-paged": "adamw", "adamw-8bit-paged": "adamw-8bit"}


def states_of(optimizer: str) -> States:
    """The states of an optimizer; UsageError for one that is not known."""
    found = next((each for each in STATES if each.name == optimizer), None)
    if found is None:
        known = ", ".join(each.name for each in STATES)
        paged = (
            "; a paged one keeps its states in memory that the driver moves" if optimizer in _PAGED else ""
        )
        raise UsageError(f"there is no formula for the optimizer {optimizer!r}: there is for {known}{paged}")
    return found
