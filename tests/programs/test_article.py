"""The article's ResNet-50: its rows from marks, and its parameters, gradients and states by arithmetic."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from vramscope.run.categories import CATEGORIES, INDEX
from vramscope.run.curves import allocated_curve, category_curves
from vramscope.run.sums import faults_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "resnet50_stages.py"
MIB = 1 << 20
PARAMETERS = 23_717_030
"""Of timm's resnet50 with 102 classes."""
RESERVED = {
    "x": 2,
    "model 1": 120,
    "model 2": 198,
    "model 2 deleted": 198,
    "optimizer": 120,
    "fvcore": 148,
    "forward, no_grad": 140,
    "forward": 148,
    "loss": 126,
    "backward": 222,
    "step": 492,
    "zero_grad": 414,
}
"""MiB after each stage at batch 1, 64 x 64, as the article prints them (the deletion is a row of ours)."""


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    pytest.importorskip("timm")
    pytest.importorskip("fvcore")
    from public_programs import run_program

    return run_program(
        tmp_path_factory.mktemp("article"), str(EXAMPLE), "--batch-size", "1", "--size", "64", gpu="rtx-3060"
    )


def test_the_articles_rows_come_from_marks(stages):
    trace = stages.check().traces[0]
    rows = {span.mark: span.reserved_bytes // MIB for span in trace.spans if span.mark}

    assert list(rows) == list(RESERVED)
    apart = {name: rows[name] - RESERVED[name] for name in rows if rows[name] != RESERVED[name]}
    assert apart == {"fvcore": -2, "forward": -2}  # one segment: docs/accuracy.md


def test_parameters_gradients_and_states_are_the_arithmetic_to_the_byte(stages):
    trace = stages.traces[0]
    blocks, spans = trace.blocks, trace.spans
    after_step = next(span.first for before, span in itertools.pairwise(spans) if before.mark == "step") - 1
    live = (blocks.born <= after_step) & (blocks.freed > after_step)
    asked = {
        name: int(blocks.requested_bytes[live & (blocks.category == INDEX[name])].sum())
        for name in CATEGORIES
    }

    assert asked["parameter"] == asked["gradient"] == 4 * PARAMETERS
    assert asked["optimizer_state"] == 2 * 4 * PARAMETERS  # Adam's steps are on the host
    owned = live & np.isin(blocks.category, [INDEX["parameter"], INDEX["gradient"], INDEX["optimizer_state"]])
    rounded = -(-blocks.requested_bytes[owned] // 512) * 512
    assert np.all((blocks.size_bytes[owned] == rounded) | (blocks.size_bytes[owned] - rounded <= MIB))


def test_at_the_backward_peak_the_categories_sum_to_allocated(stages):
    trace = stages.traces[0]
    first, end = next(
        (a.first, b.first)
        for a, b in zip(trace.spans, trace.spans[1:], strict=False)
        if a.phase == "backward"
    )
    peak = first + int(np.argmax(allocated_curve(trace)[first:end]))

    assert (
        int(category_curves(trace)[:, peak].sum())
        == int(allocated_curve(trace)[peak])
        == max(span.peak_allocated_bytes for span in trace.spans if span.phase == "backward")
    )
    assert faults_of(trace) == []
