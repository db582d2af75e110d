"""Which copies of a parameter a way of training keeps."""

from __future__ import annotations

from dataclasses import dataclass

from vramscope.errors import UsageError


@dataclass(frozen=True, slots=True)
class Scheme:
    """Bytes per parameter of everything but the optimizer's states."""

    name: str
    summary: str
    weight: int
    gradient: int
    master: int = 0
    """A second, finer copy of the weights that the optimizer steps."""
    master_gradient: int = 0
    """A second, finer copy of the gradients."""
    cast: int = 0
    """Copies for computing that come and go within a step: at most this."""
    state: int = 4
    """Of one element of a state of torch.optim's optimizers."""
    assumption: str = ""
    source: str = ""

    @property
    def lasting(self) -> int:
        """Bytes per trained parameter without states and casts."""
        return self.weight + self.gradient + self.master + self.master_gradient


SCHEMES = (
    Scheme(
        "fp32",
        "everything in fp32",
        4,
        4,
        assumption="Weights, gradients and states are fp32 tensors of the parameter's shape.",
        source="torch.autograd.Tensor.grad: a gradient has its parameter's type; torch/optim/adam.py: zeros_like(p)",
    ),
    Scheme(
        "amp",
        "fp32 weights, torch.autocast to bf16 or fp16",
        4,
        4,
        cast=2,
        assumption="Weights and gradients stay fp32; a half copy of each weight of a matrix product or convolution "
        "is made in the forward and kept until backward has used it, so 2 is the most, not the rule.",
        source="docs.pytorch.org/docs/stable/amp.html; aten/src/ATen/autocast_mode.cpp: cached_cast",
    ),
    Scheme(
        "half",
        "weights, gradients and states in bf16 or fp16",
        2,
        2,
        state=2,
        assumption="torch.optim makes states in the parameter's type, so nothing is kept in fp32.",
        source="torch/optim/adam.py: _init_group, zeros_like(p)",
    ),
    Scheme(
        "half+master",
        "bf16 or fp16 weights and gradients, an fp32 copy that is stepped",
        2,
        2,
        master=4,
        assumption="The optimizer's library keeps the fp32 copy and steps it; torch.optim alone does not.",
        source="Rajbhandari et al. 2020, ZeRO, section 3.1 (K = 12); Apex amp O2, DeepSpeed fp16 and bf16",
    ),
    Scheme(
        "half+masters",
        "bf16 or fp16 weights and gradients, fp32 copies of both",
        2,
        2,
        master=4,
        master_gradient=4,
        assumption="Gradients are kept in half and, for accumulating, in fp32.",
        source="Rajbhandari et al. 2021, ZeRO-Infinity, section 3; Megatron-LM, docs on the distributed optimizer "
        "(fp16 parameters and gradients: 20)",
    ),
)
_BY_PRECISION = {
    "fp32": "fp32",
    "tf32": "fp32",
    "amp-bf16": "amp",
    "amp-fp16": "amp",
    "amp": "amp",
    "bf16": "half",
    "fp16": "half",
    "half": "half",
}


def scheme_of(precision: str) -> Scheme:
    """The scheme of a position of the knob `precision`, or of its own name; UsageError for others."""
    name = _BY_PRECISION.get(precision, precision)
    found = next((each for each in SCHEMES if each.name == name), None)
    if found is None:
        raise UsageError(f"no scheme is called {precision!r}: there are {', '.join(_BY_PRECISION)}")
    return found
