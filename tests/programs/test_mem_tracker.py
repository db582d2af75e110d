"""Held against torch's own accounting: MemTracker's categories of the same step on the same virtual card."""

from __future__ import annotations

import json

import numpy as np
import pytest

from vramscope.run.categories import INDEX


def test_parameters_gradients_and_states_agree_with_torchs_own_tracker(program):
    pytest.importorskip("transformers")
    counted = json.loads(program("mem_tracker.py", gpu="rtx-3090").stdout.splitlines()[-1])
    trace = program("mem_tracker.py", "alone", gpu="rtx-3090").check().traces[0]

    blocks = trace.blocks
    end = next(
        b.first for a, b in zip(trace.spans, trace.spans[1:], strict=False) if a.phase == "optimizer_step"
    )
    live = (blocks.born < end) & (blocks.freed >= end)
    for theirs, ours in (
        ("Parameter", "parameter"),
        ("Buffer", "buffer"),
        ("Gradient", "gradient"),
        ("Optstate", "optimizer_state"),
    ):
        asked = blocks.requested_bytes[live & (blocks.category == INDEX[ours])]
        assert counted[theirs] == int(np.sum(-(-asked // 512) * 512)), (
            theirs
        )  # it rounds as the allocator does
