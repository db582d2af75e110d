"""Layers by formula, beside torch: operations by its counter, saved bytes by its hooks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiny_cells import cell_of
from vramscope.jobs.libraries import modules_for
from vramscope.jobs.source import parse_source
from vramscope.planning.running import run_once
from vramscope.theory import layers
from vramscope.theory.formula import Formula


def watched(run: Callable[[], Any], parameters: list[Any]) -> tuple[int, int, int]:
    """FLOPs of the forward and of the backward, and the bytes saved between them, equal memory once."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    weights = {each.untyped_storage().data_ptr() for each in parameters}
    saved: dict[int, int] = {}
    alive = []

    def keep(tensor: Any) -> Any:
        place = tensor.untyped_storage().data_ptr()
        if place not in weights:
            alive.append(tensor)
            saved[place] = tensor.untyped_storage().nbytes()
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with FlopCounterMode(display=False) as forward, hooks:
        result = run()
    with FlopCounterMode(display=False) as backward:
        result.backward(torch.ones_like(result))
    return forward.get_total_flops(), backward.get_total_flops(), sum(saved.values())


def check(formula: Formula, module: Any, *inputs: Any, miscounted: int = 0) -> None:
    own = [*module.parameters(), *module.buffers()]
    forward, backward, saved = watched(lambda: module(*inputs), own)

    assert formula.values["forward_flops"] == forward
    assert formula.values.get("backward_flops", 0) == backward - miscounted
    assert formula.values["saved_bytes"] == saved
    assert formula.values["parameters"] == sum(each.numel() for each in module.parameters())


def rand(*shape: int, dtype: str = "float32") -> Any:
    import torch

    return torch.rand(*shape, dtype=getattr(torch, dtype), requires_grad=True)


@pytest.mark.parametrize(
    ("rows", "inputs", "outputs", "bias", "dtype"),
    [(7, 24, 40, 1, "float32"), (128, 64, 8, 0, "float32"), (16, 32, 32, 1, "bfloat16")],
)
def test_linear(rows: int, inputs: int, outputs: int, bias: int, dtype: str):
    import torch

    module = torch.nn.Linear(inputs, outputs, bias=bool(bias), dtype=getattr(torch, dtype))
    size = module.weight.element_size()
    formula = layers.linear(inputs=inputs, outputs=outputs, rows=rows, bias=bias, bytes=size)
    check(formula, module, rand(rows, inputs, dtype=dtype))


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "groups", "bias"),
    [(3, 1, 1, 1, 0), (7, 2, 3, 1, 1), (1, 1, 0, 1, 1), (3, 1, 1, 4, 0), (3, 2, 1, 8, 1)],
)
def test_conv2d(kernel: int, stride: int, padding: int, groups: int, bias: int):
    import torch

    shape = {"kernel": kernel, "stride": stride, "padding": padding, "groups": groups, "bias": bias}
    module = torch.nn.Conv2d(8, 16, kernel, stride, padding, groups=groups, bias=bool(bias))
    formula = layers.conv2d(inputs=8, outputs=16, batch=2, height=15, width=18, **shape)
    forward = int(formula.values["forward_flops"] or 0)
    # torch's counter takes the gradient of a grouped weight for that of an ungrouped one (conv_backward_flop)
    check(formula, module, rand(2, 8, 15, 18), miscounted=forward * (groups - 1))


def test_batch_norm_has_its_buffers_too():
    import torch

    module = torch.nn.BatchNorm2d(12)
    formula = layers.batch_norm(channels=12, batch=3, height=5, width=6)
    check(formula, module, rand(3, 12, 5, 6))
    assert formula.values["buffer_bytes"] == sum(each.nbytes for each in module.buffers())


def test_layer_norm():
    import torch

    check(layers.layer_norm(features=48, rows=14), torch.nn.LayerNorm(48), rand(2, 7, 48))


def test_embedding():
    import torch

    rows = torch.zeros(3, 11, dtype=torch.int64)
    check(layers.embedding(count=50, features=16, rows=33), torch.nn.Embedding(50, 16), rows)


@pytest.mark.parametrize("kind", ["ReLU", "Sigmoid", "Tanh", "GELU", "SiLU"])
def test_an_activation_saves_one_tensor(kind: str):
    import torch

    check(layers.activation(elements=60), getattr(torch.nn, kind)(), rand(6, 10))


def test_max_pool():
    import torch

    formula = layers.max_pool(elements=2 * 4 * 16 * 16, results=2 * 4 * 8 * 8)
    check(formula, torch.nn.MaxPool2d(2), rand(2, 4, 16, 16))


def test_cross_entropy_saves_the_log_softmax_and_the_labels_and_a_weight_of_4_bytes():
    import torch

    labels = torch.zeros(12, dtype=torch.int64)
    logits = rand(12, 30)
    _, _, saved = watched(lambda: torch.nn.functional.cross_entropy(logits, labels), [])

    assert saved == layers.cross_entropy(classes=30, rows=12).values["saved_bytes"] + 4  # type: ignore[operator]


def test_attention_that_is_written_out():
    import torch

    query, key, value = (rand(2, 4, 24, 16) for _ in range(3))
    formula = layers.attention(heads=4, head=16, batch=2, seq=24, flash=0, bytes=4)

    def attend() -> Any:
        return torch.softmax(query @ key.transpose(-1, -2), -1) @ value

    forward, backward, saved = watched(attend, [])
    assert (forward, backward) == (formula.values["forward_flops"], formula.values["backward_flops"])
    assert saved == formula.values["saved_bytes"]


_ON_A_CARD = """
import json, torch
from pathlib import Path
from torch.utils.flop_counter import FlopCounterMode
def watched(run, *own):
    saved = {}
    def keep(tensor):
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor
    with FlopCounterMode(display=False) as forward:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            y = run()
    with FlopCounterMode(display=False) as backward:
        y.backward(torch.ones_like(y))
    for each in own:
        saved.pop(each.untyped_storage().data_ptr())
    return forward.get_total_flops(), backward.get_total_flops(), sum(saved.values())
def ones(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype, device="cuda", requires_grad=True)
norm, x, many = torch.nn.RMSNorm(64, device="cuda"), ones(6, 7, 64), ones(20, 40)
q, k, v = (ones(2, 4, 24, 32, dtype=torch.bfloat16) for _ in range(3))
attend = torch.nn.functional.scaled_dot_product_attention
Path(OUT).write_text(json.dumps([
    watched(lambda: norm(x), norm.weight),
    watched(lambda: torch.nn.functional.dropout(many, 0.3)),
    watched(lambda: attend(q, k, v)),
]))
"""


@pytest.mark.virtual
@pytest.mark.models
def test_layers_whose_kernels_are_cudas_alone(tmp_path: Path):
    """RMSNorm of one piece, dropout with a mask of bytes, flash attention, whose random state is two small tensors.

    In the warm process that test_held's models run in, too."""
    out = tmp_path / "out.json"
    modules = modules_for(parse_source("timm/resnet18"))
    _, ran = run_once(cell_of(_ON_A_CARD.replace("OUT", repr(str(out))), modules=modules, history=False))

    assert out.exists(), ran.output
    norm, dropout, attention = json.loads(out.read_text())
    assert norm == [0, 0, layers.rms_norm(features=64, rows=42).values["saved_bytes"]]
    assert dropout == [0, 0, layers.dropout(elements=800).values["saved_bytes"]]
    found = layers.attention(heads=4, head=32, batch=2, seq=24)
    assert attention[:2] == [found.values["forward_flops"], found.values["backward_flops"]]
    assert 0 <= attention[2] - int(found.values["saved_bytes"] or 0) <= 48
