"""Loops that others write: Lightning, accelerate, torch_geometric, a PPO-like sampler, torch.compile, several cards."""

from __future__ import annotations

import pytest


def test_lightning_fit(program):
    pytest.importorskip("lightning")
    ran = program("lightning_fit.py").check().unchanged()

    assert len(ran.of("step")) == 4
    assert ran.peak("fit") > 4 * ran.facts["model"]["parameter_bytes"]


def test_accelerate_accumulates_and_steps_with_its_scaler(program, workspaces):
    pytest.importorskip("accelerate")
    ran = program("accelerate_fp16.py").check().unchanged()

    assert len(ran.of("step")) == 4  # 16 batches, 4 to a step
    # Four of a kind, the optimizer's temporaries of one more, and a batch of 32.
    assert 4 <= (ran.peak("accelerate") - workspaces) / ran.facts["model"]["parameter_bytes"] <= 6


def test_graph_convolutions(program):
    pytest.importorskip("torch_geometric")
    ran = program("gcn.py").check().unchanged()

    assert len(ran.of("step")) == 3
    # Every edge, and each node's own, carries a message of 128 floats, in each of the two directions.
    assert ran.peak("gcn") > 2 * (8000 + 2000) * 128 * 4


def test_policy_optimization(program):
    ran = program("ppo.py").check().unchanged()

    assert len(ran.of("step")) == 8  # two samples of 128 in minibatches of 32


def test_compiled_training_and_any_batch(program):
    ran = program("compiled.py").check().unchanged()

    assert len(ran.of("step")) == 3
    assert ran.facts["graphs"]["breaks"] == 0
    assert ran.peak("compiled") < ran.peak("eager")  # pointwise layers are fused: fewer activations are kept
    assert ran.peak("dynamic") >= 40 * 256 * 4


def test_data_parallel_over_two_cards(program):
    ran = program("data_parallel.py", devices=2).check()

    parameters = ran.facts["model"]["parameter_bytes"]
    assert ran.peak("card 0") > 4 * parameters
    assert parameters < ran.peak("card 1") < 2 * parameters  # a replica and its gradients in turn
    assert all(used > ran.peak(f"card {n}") for n, used in enumerate(ran.peak_used_bytes))


def test_function_transforms_and_other_traps(program):
    program("transforms.py").check().unchanged()
