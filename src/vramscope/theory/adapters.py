"""LoRA and QLoRA by formula."""

from __future__ import annotations

from vramscope.theory.formula import Formula

NF4_BITS = 4 + 8 / 64 + 32 / (64 * 256)
"""Per weight: 4, an 8-bit scale for each 64, an fp32 scale for each 256 of these."""
PLAIN_NF4_BITS = 4 + 32 / 64
"""Without double quantization: an fp32 scale for each 64."""


def lora(*, inputs: int, outputs: int, rank: int, kernel: int = 1, bytes: int = 4) -> Formula:
    """The two matrices beside a layer; kernel: the side of a convolution's."""
    count = rank * (inputs * kernel**2 + outputs)
    whole = inputs * outputs * kernel**2
    return Formula(
        "LoRA",
        "r·in + r·out trained instead of in·out; a convolution's r·in·k² + r·out",
        {
            "parameters": count,
            "frozen_parameters": whole,
            "share": count / whole,
            "trained_bytes": count * bytes,
            "adam_bytes": 2 * count * bytes,
        },
        "Only the two matrices have gradients and states; the layer's own weight stays, and the chain of activations "
        "through it does, too.",
        "Hu et al. 2021, LoRA, section 4.1; peft/tuners/lora/layer.py: Linear, _ConvNd",
    )


def qlora(*, weights: int) -> Formula:
    """Weights in 4 bits with their scales."""
    return Formula(
        "QLoRA, NF4 with double quantization",
        "(4 + 8/64 + 32/(64·256)) / 8 bytes per weight",
        {
            "bits_per_weight": NF4_BITS,
            "weight_bytes": round(weights * NF4_BITS / 8),
            "without_double_quantization_bytes": round(weights * PLAIN_NF4_BITS / 8),
        },
        "All of them are in linear layers that are quantized: embeddings, norms and the head stay as they are; tables "
        "of codes (1,088 bytes a layer) and one offset a layer are left out.",
        "Dettmers et al. 2023, QLoRA, section 3; bitsandbytes/functional.py: quantize_4bit",
    )


def nf4_bytes(weights: int, table_width: int = 4) -> int:
    """What bitsandbytes makes of a weight: packed codes, 8-bit scales, their fp32 scales, two tables, an offset.

    table_width: bytes of an element of torch's default type, of which the table of the 16 codes is."""
    blocks = -(-weights // 64)
    return -(-weights // 2) + blocks + 4 * -(-blocks // 256) + 4 * 256 + table_width * 16 + 4
