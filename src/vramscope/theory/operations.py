"""From the layers that were seen to their operations: a multiplication with its addition is two."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vramscope.theory.seen import Layer

PACKED = "Linear4bit"
"""The class of bitsandbytes' 4-bit layers."""
ATTENTION = "scaled_dot_product_attention"


def forward_flops(layer: Layer) -> int:
    """Its operations by formula."""
    if not (layer.inputs and layer.outputs):
        return 0
    if layer.family == "linear":
        return 2 * layer.outputs[0].elements * layer.inputs[0].shape[-1]
    if layer.family == "conv":
        weight: Sequence[int] = layer.figures["weight"]
        pixels = layer.inputs[0] if layer.figures.get("transposed") else layer.outputs[0]
        return 2 * pixels.elements * (math.prod(weight) // weight[0])
    if layer.family == ATTENTION:
        query, key = layer.inputs[0], layer.inputs[1]
        return 4 * query.elements * key.shape[-2]
    return 0


def backward_flops(layer: Layer) -> int:
    """Of its backward: as many for the weight's gradient, if it trains, and for the input's, if that has one."""
    if layer.again or not any(each.grad for each in layer.outputs):
        return 0
    if layer.family == ATTENTION:
        return forward_flops(layer) * 5 // 2  # the scores are computed anew
    return forward_flops(layer) * (layer.trains + layer.inputs[0].grad if layer.inputs else 0)


def miscounted_flops(layer: Layer) -> int:
    """What torch's counter has too many of a layer; below 0: that it does not see.

    It takes the gradient of a grouped convolution's weight for that of an ungrouped one, and does not know the
    product of a 4-bit weight, which is a kernel of bitsandbytes."""
    if layer.kind == PACKED:
        return -forward_flops(layer)
    backward = layer.trains and not layer.again and any(each.grad for each in layer.outputs)
    if layer.family != "conv" or not backward:
        return 0
    groups: int = layer.figures.get("groups", 1)
    return forward_flops(layer) * (groups - 1)
