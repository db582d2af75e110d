"""Layers by formula: parameters, operations, and what the forward saves for the backward.

Operations count a multiplication with its addition as two, as torch.utils.flop_counter does; elementwise work is
not counted.  `bytes` is an element's size.  Saved tensors are those of a layer alone, whose weights train: where
two layers save the same tensor, it is there once."""

from __future__ import annotations

from vramscope.theory.formula import Formula, ceil_to

_FLOPS = "torch/utils/flop_counter.py"
_DERIVATIVES = "tools/autograd/derivatives.yaml"


def linear(*, inputs: int, outputs: int, rows: int, bias: int = 1, bytes: int = 4) -> Formula:
    """A matrix product with a weight of outputs x inputs, over so many rows."""
    flops = 2 * rows * inputs * outputs
    return Formula(
        "Linear",
        "parameters in·out + out; forward 2·rows·in·out, backward twice that; saves its input, rows·in",
        {
            "parameters": inputs * outputs + (outputs if bias else 0),
            "forward_flops": flops,
            "backward_flops": 2 * flops,
            "saved_bytes": rows * inputs * bytes,
        },
        "The input is saved because the weight trains, under autocast in half; a frozen weight saves nothing.",
        f"{_DERIVATIVES}: linear; {_FLOPS}: mm_flop",
    )


def conv2d(
    *,
    inputs: int,
    outputs: int,
    kernel: int,
    batch: int,
    height: int,
    width: int,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
    bias: int = 1,
    bytes: int = 4,
) -> Formula:
    """A convolution of images of height x width."""
    high, wide = (1 + (side + 2 * padding - kernel) // stride for side in (height, width))
    weights = inputs // groups * outputs * kernel**2
    flops = 2 * batch * high * wide * weights
    return Formula(
        "Conv2d",
        "parameters in/groups·out·k² + out; forward 2·batch·height'·width'·in/groups·out·k²; saves its input",
        {
            "parameters": weights + (outputs if bias else 0),
            "forward_flops": flops,
            "backward_flops": 2 * flops,
            "saved_bytes": batch * inputs * height * width * bytes,
        },
        "cuDNN's workspace is not in it, nor that an algorithm may need fewer multiplications (Winograd); torch's "
        "counter takes the gradient of a grouped weight for that of an ungrouped one, `groups` times as much.",
        f"{_DERIVATIVES}: convolution; {_FLOPS}: conv_flop_count",
    )


def batch_norm(*, channels: int, batch: int, height: int = 1, width: int = 1, bytes: int = 4) -> Formula:
    """Batch normalization in training."""
    return Formula(
        "BatchNorm",
        "parameters 2·C; buffers 2·C fp32 and a count; saves its input and 2·C fp32",
        {
            "parameters": 2 * channels,
            "buffer_bytes": 2 * 4 * channels + 8,
            "forward_flops": 0,
            "saved_bytes": batch * channels * height * width * bytes + 2 * 4 * channels,
        },
        "Mean and inverse deviation of the batch are kept in fp32; cuDNN's reserve (channels_last) is not in it.",
        f"{_DERIVATIVES}: cudnn_batch_norm",
    )


def layer_norm(*, features: int, rows: int, bytes: int = 4) -> Formula:
    """Layer normalization over the last dimension."""
    return Formula(
        "LayerNorm",
        "parameters 2·features; saves its input and 2·rows fp32",
        {
            "parameters": 2 * features,
            "forward_flops": 0,
            "saved_bytes": rows * features * bytes + 2 * 4 * rows,
        },
        "Under autocast it runs in fp32, and a half input is saved as an fp32 copy.",
        f"{_DERIVATIVES}: native_layer_norm",
    )


def rms_norm(*, features: int, rows: int, bytes: int = 4) -> Formula:
    """RMS normalization over the last dimension, torch.nn.RMSNorm."""
    return Formula(
        "RMSNorm",
        "parameters features; saves its input and rows fp32",
        {"parameters": features, "forward_flops": 0, "saved_bytes": rows * features * bytes + 4 * rows},
        "torch.nn.RMSNorm on a card; one that is written out, as in transformers, saves an fp32 input and the "
        "normalized one besides.",
        "aten/src/ATen/native/layer_norm.cpp: _fused_rms_norm",
    )


def embedding(*, count: int, features: int, rows: int, bytes: int = 4) -> Formula:
    """A table of vectors, from which rows are taken."""
    return Formula(
        "Embedding",
        "parameters count·features; no operations; saves its indices, 8·rows",
        {"parameters": count * features, "forward_flops": 0, "saved_bytes": 8 * rows},
        "Indices are int64; the gradient is as large as the whole table unless sparse=True.",
        f"{_DERIVATIVES}: embedding",
    )


def attention(
    *,
    heads: int,
    head: int,
    batch: int,
    seq: int,
    keys: int = 0,
    kv_heads: int = 0,
    flash: int = 1,
    bytes: int = 2,
) -> Formula:
    """softmax(q·kᵀ)·v, without its projections; keys is their length where it is not that of the queries."""
    length, groups = keys or seq, kv_heads or heads
    inputs = batch * head * (heads * seq + 2 * groups * length) * bytes
    out, square = batch * heads * seq * head * bytes, batch * heads * seq * length
    flops = 4 * square * head
    saved = inputs + out + 4 * batch * heads * seq if flash else inputs + square * bytes
    return Formula(
        "Attention",
        "forward 4·batch·heads·seq·keys·head; saves q, k, v, its result and 4·batch·heads·seq (flash), "
        "or q, k, v and batch·heads·seq·keys (written out)",
        {
            "parameters": 0,
            "forward_flops": flops,
            "backward_flops": (5 if flash else 4) * flops // 2,
            "saved_bytes": saved,
        },
        "A causal mask is not taken off the operations, flash recomputes q·kᵀ in backward; two numbers of the random "
        "state (24 bytes) are left out, and the memory-efficient kernel rounds seq up to 32 in its fp32 row.",
        "Dao et al. 2022, FlashAttention; torch/utils/flop_counter.py: sdpa_flop_count, sdpa_backward_flop_count",
    )


def cross_entropy(*, classes: int, rows: int, bytes: int = 4) -> Formula:
    """The loss over logits of rows x classes."""
    return Formula(
        "cross_entropy",
        "saves the log-softmax, rows·classes, and the labels, 8·rows; in backward two more of rows·classes",
        {
            "parameters": 0,
            "forward_flops": 0,
            "saved_bytes": rows * classes * bytes + 8 * rows,
            "backward_temporary_bytes": 2 * rows * classes * bytes,
        },
        "Labels are int64 and were there before; under autocast it runs in fp32, and half logits are saved as well.",
        f"{_DERIVATIVES}: _log_softmax, nll_loss_forward",
    )


def activation(*, elements: int, bytes: int = 4) -> Formula:
    """ReLU, Sigmoid, Tanh, Softmax (which save their result), GELU and SiLU (their input)."""
    return Formula(
        "activation",
        "saves elements: its result (ReLU, Sigmoid, Tanh, Softmax) or its input (GELU, SiLU)",
        {"parameters": 0, "forward_flops": 0, "saved_bytes": elements * bytes},
        "Mostly the next layer saves the same result, which is then there once.",
        f"{_DERIVATIVES}: relu, sigmoid, tanh, _softmax, gelu, silu",
    )


def dropout(*, elements: int) -> Formula:
    """Dropout in training."""
    return Formula(
        "Dropout",
        "saves a mask of one byte per element",
        {"parameters": 0, "forward_flops": 0, "saved_bytes": elements},
        "p is above 0 and the module in training.",
        f"{_DERIVATIVES}: native_dropout",
    )


def max_pool(*, elements: int, results: int, bytes: int = 4) -> Formula:
    """A pooling that takes maxima."""
    return Formula(
        "MaxPool",
        "saves its input and the places of the maxima, 8·results",
        {"parameters": 0, "forward_flops": 0, "saved_bytes": elements * bytes + 8 * results},
        "Places are int64; average pooling keeps only its input's shape.",
        f"{_DERIVATIVES}: max_pool2d_with_indices",
    )


def efficient_row_bytes(batch: int, heads: int, seq: int) -> int:
    """What the memory-efficient kernel of attention keeps of the softmax: fp32, rows rounded up to 32."""
    return 4 * batch * heads * ceil_to(seq, 32)
