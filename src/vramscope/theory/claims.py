"""What two blog articles say a parameter costs, beside what PyTorch keeps, and why they differ."""

from __future__ import annotations

from dataclasses import dataclass

INT8_CONTEXT_BYTES = 1_300_000_000
"""What the worked example of LLaMA-6B in int8 adds for CUDA's own."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A figure per parameter, under Adam."""

    name: str
    said: str
    """What it is said of."""
    parts: tuple[tuple[str, int], ...]
    """Copies that make the sum, with their bytes."""
    pytorch: int
    """The bytes per parameter that stay from step to step in PyTorch."""
    casts: int
    """What PyTorch has at most beside, within a step."""
    why: str
    """Why they differ, or are alike."""
    source: str

    @property
    def per_parameter(self) -> int:
        """The sum, in bytes."""
        return sum(size for _, size in self.parts)


_FIRST = "a blog article on what fine-tuning takes of a GPU's memory, with timm's ResNets (CSDN)"
_SECOND = "a blog article on the parts of training memory"
CLAIMS = (
    Claim(
        "16A",
        "mixed precision",
        (
            ("half weights", 2),
            ("half gradients", 2),
            ("fp32 master weights", 4),
            ("fp32 momentum", 4),
            ("fp32 variance", 4),
        ),
        16,
        2,
        "The sum is that of ZeRO's paper, of training with half weights and a master copy. torch.autocast keeps no "
        "master copy: its weights are the fp32 ones, its gradients are fp32 too, and half copies exist only within "
        "a step. 4 + 4 + 4 + 4 is 16 as well, of other copies: so autocast saves nothing of weights, gradients and "
        "states, only activations.",
        f"{_FIRST}; the sum: Rajbhandari et al. 2020, ZeRO, section 3.1",
    ),
    Claim(
        "20A",
        "mixed precision",
        (
            ("half weights", 2),
            ("half gradients", 2),
            ("fp32 master weights", 4),
            ("fp32 gradients", 4),
            ("fp32 momentum", 4),
            ("fp32 variance", 4),
        ),
        16,
        2,
        "As 16A with a second, fp32 copy of the gradients, which Megatron-LM and ZeRO-Infinity have for half "
        "parameters. torch.autocast has one set of gradients, in fp32.",
        f"{_FIRST}; the sum: Rajbhandari et al. 2021, ZeRO-Infinity, section 3",
    ),
    Claim(
        "20x",
        "fp32",
        (("weights", 4), ("gradients", 4), ("master weights", 4), ("momentum", 4), ("variance", 4)),
        16,
        0,
        "16A with 4 in place of 2: it has a master copy of weights that are fp32 already. No PyTorch optimizer "
        "makes one: 4 + 4 + 8.",
        _FIRST,
    ),
    Claim(
        "24x",
        "fp32",
        (
            ("weights", 4),
            ("gradients", 4),
            ("master weights", 4),
            ("master gradients", 4),
            ("momentum", 4),
            ("variance", 4),
        ),
        16,
        0,
        "20A with 4 in place of 2: copies of fp32 weights and of fp32 gradients in fp32, which nothing makes.",
        _FIRST,
    ),
    Claim(
        "1 + 1 + 2",
        "fp32: parameters, gradients, Adam",
        (("weights", 4), ("gradients", 4), ("momentum and variance", 8)),
        16,
        0,
        "Right for fp32 and for pure half precision. The inputs that layers save are named beside, but have no "
        "figure per parameter: they follow from batch and shapes. Buffers, workspaces, temporaries of the step, "
        "cached blocks and the context are missing.",
        _SECOND,
    ),
    Claim(
        "int8",
        "LLaMA-6B in int8, and 1.3 GB for CUDA",
        (("int8 weights", 1), ("int8 gradients", 1), ("int8 momentum and variance", 2)),
        16,
        0,
        "An integer tensor of PyTorch cannot have a gradient, so nothing trains so. What trains on 8-bit or 4-bit "
        "weights keeps them frozen and trains adapters (QLoRA); 8-bit optimizers have 2 bytes of states, with "
        "weights and gradients of 2 or 4 bytes.",
        "a worked example that the articles link to",
    ),
)
