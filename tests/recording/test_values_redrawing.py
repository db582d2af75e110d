"""Loops of libraries that draw until every value is accepted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from vramscope.recording.values.redrawing import redraws

TRUNCATED = """
import torch
with torch.device("cuda"):
    weight = torch.empty(1000, 1000)
    torch.nn.init.trunc_normal_(weight, std=0.02)
    print(torch.cuda.max_memory_allocated() // 1_000_000)
    torch.nn.init.trunc_normal_(weight)
    print(torch.cuda.max_memory_allocated() // 1_000_000)
    torch.nn.init.trunc_normal_(weight, a=1.5, b=3)
"""
OWN = """
import torch
x = torch.randn(8, device="cuda")
while True:
    if not (x < 0).any():
        break
"""


@pytest.mark.virtual
def test_truncated_normal_weights_are_drawn(virtual: Callable):
    """With bounds at a hundred deviations nothing is drawn again: only masks are made beside the weight."""
    ran = virtual(TRUNCATED, "t4").check()

    near, far = map(int, ran.stdout.split())
    assert near == 4 + 3
    assert far > near + 4


@pytest.mark.virtual
def test_a_loop_of_the_programs_own_is_named_instead(virtual: Callable):
    ran = virtual(OWN, "t4")

    assert "waits on the card for ever" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((1_000_000, 0.0, 0.02, -2.0, 2.0), 0),
        ((1, 0.0, 1.0, -2.0, 2.0), 0),
        ((1_000_000, 0.0, 1.0, -2.0, 2.0), 4),  # 1e6 * 0.0455**4 is 4.3, **5 is 0.2
        ((0, 0.0, 1.0, -2.0, 2.0), 0),
    ],
)
def test_how_often_is_known_from_the_bounds(arguments, expected):
    assert redraws(*arguments) == expected
