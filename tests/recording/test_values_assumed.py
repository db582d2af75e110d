"""Where nothing is known the policy answers, and each answer is named with its line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.virtual

UNKNOWN = """
import torch, torch.nn.functional as F
x = torch.randn(100, 8, device="cuda")
loss = x.mean()
print(1 / loss.item())
print(bool(torch.isnan(loss)), torch.isfinite(x).all().item(), torch.isinf(x).any().item())
print(x[x[:, 0] > 0].shape[0], torch.where(x > 0)[0].numel(), x.masked_select(x > 0).numel())
print(x[:, 0].unique().numel(), torch.allclose(x, x + 1), x[:2, :2].tolist())
print(x.topk(2).indices.flatten().bincount().tolist())
print(x.argmax(1).bincount(minlength=8).tolist())
tokens = torch.randn(4, 32000, device="cuda").argmax(-1)
print(len(set(tokens.tolist())), 2 < tokens.min().item(), tokens.max().item() < 31999)
print(torch.distributions.Categorical(logits=x).sample().shape)
print(x.repeat_interleave((x[:, 0] * 3).int(), dim=0).shape[0])
torch.nn.utils.clip_grad_norm_([torch.nn.Parameter(x)], 1.0, error_if_nonfinite=True)
"""


def last_of(entries: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The last entry of each assumption and line: counts are cumulative."""
    return {(entry["what"], entry["where"]): entry for entry in entries}


def test_the_defaults(virtual: Callable):
    ran = virtual(UNKNOWN, "a100-80gb").check()

    assert ran.stdout.splitlines() == [
        "1.0",
        "False True False",
        "100 800 800",
        "100 True [[1.0, 1.0], [1.0, 1.0]]",
        "[25, 25, 25, 25, 25, 25, 25, 25]",
        "[13, 13, 13, 13, 12, 12, 12, 12]",
        "4 True True",
        "torch.Size([100])",
        "100",
    ]
    assumed = last_of(ran.of("assumed"))
    assert assumed["float", "<string>:5"]["value"] == "is 1.0"
    assert assumed["compare", "<string>:7"] | {"pid": 0} == {
        "pid": 0,
        "kind": "assumed",
        "what": "compare",
        "where": "<string>:7",
        "count": 3,
        "value": "takes all of 800 rows",
    }
    assert assumed["finite", "<string>:6"]["count"] == 3
    assert assumed["repeat", "<string>:14"]


def test_each_can_be_set(virtual: Callable):
    code = """
import torch
x = torch.randn(100, 8, device="cuda")
print(x.mean().item(), x[x[:, 0] > 0].shape[0], x.nonzero().shape[0], x[:, 0].unique().numel())
print(torch.isfinite(x).all().item(), x.mean().long().item())
print(x.topk(2).indices.flatten().bincount().tolist())
print(x.repeat_interleave((x[:, 0] * 3).int(), dim=0).shape[0])
"""
    assume = "float=2.5;compare=0.5;nonzero=0.25;unique=0.1;finite=false;int=7;routing=2;repeat=3"
    ran = virtual(code, "a100-80gb", assume=assume).check()

    first, second, third, fourth = ran.stdout.splitlines()
    assert first == "2.5 50 200 10"
    assert second == "False 7"
    assert third.startswith("[50, ")
    assert sum(eval(third)) == 200
    assert fourth == "300"


def test_gradscaler_steps_and_keeps_its_scale(virtual: Callable):
    code = """
import torch
m = torch.nn.Linear(8, 8).cuda(); opt = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cuda", growth_interval=2)
for _ in range(3):
    with torch.autocast("cuda", dtype=torch.float16): loss = m(torch.randn(4, 8, device="cuda")).sum()
    scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); opt.zero_grad()
print(len(opt.state), scaler.get_scale())
"""
    ran = virtual(code, "a100-80gb").check()

    assert ran.stdout.split() == ["2", "131072.0"]


def test_a_loop_that_waits_for_ever_is_named(virtual: Callable):
    code = """
import torch
x = torch.randn(3, device="cuda")
try:
    while x.mean().item() > 0.5:
        x.mul_(0.9)
except Exception:
    print("swallowed")
"""
    ran = virtual(code, "a100-80gb", timeout=60)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert "<string>:5 waits on the card for ever" in ran.stderr
    assert "--assume float=" in ran.stderr
    (waiting,) = ran.of("waiting")
    assert waiting["where"] == "<string>:5"


def test_a_long_loop_over_data_is_no_waiting(virtual: Callable):
    code = """
import torch
from vramscope.recording.values import waiting
waiting.READS_LIMIT = 100
data = torch.randn(10_000)
for _ in range(500): data.cuda().mean().item()
print("done")
"""
    ran = virtual(code, "a100-80gb").check()

    assert ran.stdout == "done\n"
    assert last_of(ran.of("assumed"))["float", "<string>:6"]["count"] == 500


def test_printing_a_tensor_assumes_nothing(virtual: Callable):
    ran = virtual("import torch\nprint(torch.randn(5, device='cuda').mean())").check()

    assert ran.of("assumed") == []
