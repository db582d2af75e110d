"""What optimizers keep, by formula and in the real ones, to the byte."""

from __future__ import annotations

import math
from typing import Any

import pytest

from vramscope.errors import UsageError
from vramscope.theory.states import STATES, states_of

SHAPES = ((64, 96), (130,), (8, 4, 3, 3), (4096,), (5000,), (96, 257))
WIDTHS = ("float32", "bfloat16")


def parameters(dtype: str, shapes: Any = SHAPES) -> list[Any]:
    import torch

    made = [torch.nn.Parameter(torch.ones(shape, dtype=getattr(torch, dtype))) for shape in shapes]
    for each in made:
        each.grad = torch.ones_like(each)
    return made


def kept_bytes(optimizer: Any) -> int:
    """All tensors of the states but the counts of steps, which lie on the host."""
    import torch

    return sum(
        tensor.nbytes
        for state in optimizer.state.values()
        for name, tensor in state.items()
        if isinstance(tensor, torch.Tensor) and name != "step"
    )


def by_formula(name: str, made: list[Any]) -> int:
    states = states_of(name)
    return sum(states.of_shape(tuple(each.shape), each.element_size()) for each in made)


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "adamw", "adafactor"])
def test_torchs_optimizers_keep_what_the_formula_says(name: str, dtype: str):
    import torch

    kind, more = {
        "sgd": (torch.optim.SGD, {}),
        "momentum": (torch.optim.SGD, {"momentum": 0.9}),
        "adam": (torch.optim.Adam, {}),
        "adamw": (torch.optim.AdamW, {}),
        "adafactor": (torch.optim.Adafactor, {}),
    }[name]
    made = parameters(dtype)
    optimizer = kind(made, lr=0.1, **more)
    optimizer.step()

    assert kept_bytes(optimizer) == by_formula(name, made)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_muon_keeps_one_state_of_a_matrix_and_adamw_two_of_the_rest(dtype: str):
    import torch

    made = parameters(dtype)
    muon = torch.optim.Muon([each for each in made if each.ndim == 2], lr=0.1)
    others = torch.optim.AdamW([each for each in made if each.ndim != 2], lr=0.1)
    muon.step()
    others.step()

    assert kept_bytes(muon) + kept_bytes(others) == by_formula("muon", made)


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("name", ["adamw-8bit", "lion"])
def test_those_of_bitsandbytes_do(name: str, dtype: str):
    bitsandbytes = pytest.importorskip("bitsandbytes")
    kind = {"adamw-8bit": bitsandbytes.optim.AdamW8bit, "lion": bitsandbytes.optim.Lion}[name]
    made = parameters(dtype)
    optimizer = kind(made, lr=0.1)
    for number, each in enumerate(made):
        optimizer.init_state(optimizer.param_groups[0], each, 0, number)

    tables = [
        {name: tensor for name, tensor in state.items() if name.startswith("qmap")}
        for state in optimizer.state.values()
    ]
    shared = {tensor.data_ptr(): tensor.nbytes for each in tables for tensor in each.values()}
    own = kept_bytes(optimizer) - sum(tensor.nbytes for each in tables for tensor in each.values())
    assert own == by_formula(name, made)
    assert sum(shared.values()) == states_of(name).once


@pytest.mark.parametrize("dtype", WIDTHS)
def test_that_of_torchao_does(dtype: str):
    torchao = pytest.importorskip("torchao.optim")
    made = parameters(dtype)
    optimizer = torchao.AdamW8bit(made, lr=0.1)
    states = [optimizer._new_buffer(each, signed) for each in made for signed in (True, False)]

    def size(state: Any) -> int:
        parts = [getattr(state, name, None) for name in ("codes", "scale", "qmap")]
        return sum(part.nbytes for part in parts) if parts[0] is not None else int(state.nbytes)

    assert sum(map(size, states)) == by_formula("adamw-8bit-torchao", made)


@pytest.mark.parametrize("states", STATES, ids=lambda states: states.name)
def test_the_figure_per_parameter_is_that_of_a_large_matrix(states: Any):
    """But for 8-bit tables, which are the same for all sizes."""
    shape, width = (4096, 4096), 2
    each = states.per_parameter(width)

    if each is None:
        assert states.name == "adafactor"
    else:
        assert states.of_shape(shape, width) / math.prod(shape) == pytest.approx(each, rel=1e-4)


def test_a_paged_optimizer_has_no_formula_and_the_error_says_why():
    with pytest.raises(UsageError, match=r"adamw-paged.*the driver moves"):
        states_of("adamw-paged")
