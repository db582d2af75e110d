"""Knowing values changes no allocation: the same programs with and without, to the byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.virtual

WITHOUT = "import vramscope.recording.values as values; values.install = lambda torch: None\n"

STEPS = """
import torch
def run(model, data, autocast, make, set_to_none=True):
    opt, scaler, seen = make(model.parameters()), torch.amp.GradScaler("cuda", enabled=autocast), []
    for _ in range(3):
        with torch.autocast("cuda", enabled=autocast, dtype=torch.float16):
            loss = model(data.to("cuda")).float().square().mean()
        seen.append(torch.cuda.memory_allocated())
        scaler.scale(loss).backward(); scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt); scaler.update(); opt.zero_grad(set_to_none=set_to_none)
        stats = torch.cuda.memory_stats()
        seen += [stats[key] for key in ("allocated_bytes.all.current", "allocated_bytes.all.peak",
                 "reserved_bytes.all.peak", "requested_bytes.all.peak", "allocation.all.allocated")]
    return seen
"""

VISION = (
    STEPS
    + """
import torchvision
for autocast in (False, True):
    model = torchvision.models.resnet18().cuda().to(memory_format=torch.channels_last if autocast else torch.contiguous_format)
    print(run(model, torch.randn(4, 3, 96, 96), autocast, lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)))
"""
)

LANGUAGE = (
    STEPS
    + """
from torch.utils.checkpoint import checkpoint
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.norm = torch.nn.Linear(64, 192), torch.nn.Linear(64, 64), torch.nn.LayerNorm(64)
    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        turned = torch.cat([-q[..., 32:], q[..., :32]], -1) * q.cos() + q * q.sin()
        return x + self.out(torch.nn.functional.scaled_dot_product_attention(turned, k, v, is_causal=True))
class Model(torch.nn.Module):
    def __init__(self, recompute):
        super().__init__()
        self.embed, self.recompute = torch.nn.Embedding(500, 64), recompute
        self.blocks, self.head = torch.nn.ModuleList(Block() for _ in range(3)), torch.nn.Linear(64, 500)
    def forward(self, ids):
        x = self.embed(ids) + self.embed(torch.arange(ids.shape[1], device=ids.device) % 500)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(torch.nn.functional.gelu(x, approximate="tanh") * 0.5 + x.pow(3) * 0.1)
ids = torch.randint(0, 500, (4, 128))
for recompute in (False, True):
    for foreach, autocast, none in ((True, False, True), (False, True, True), (True, True, False)):
        print(run(Model(recompute).cuda(), ids, autocast, lambda p: torch.optim.AdamW(p, foreach=foreach), none))
"""
)


@pytest.mark.parametrize("program", [VISION, LANGUAGE], ids=["vision", "language"])
def test_the_same_bytes_with_and_without(virtual: Callable, program: str):
    known = virtual(program, "a100-80gb").check()
    # found before torch is imported, so that nothing is installed
    blind = virtual(WITHOUT + program, "a100-80gb").check()

    assert known.stdout == blind.stdout
    assert known.stdout.count("[") >= 2


def test_without_really_is_without(virtual: Callable):
    ran = virtual(WITHOUT + "import torch; print(torch.ones(1, device='cuda').add(1).item())").check()

    assert ran.stdout == "0.0\n"


def test_gradients_still_add_up_in_place(virtual: Callable):
    """A second holder of a gradient's storage would make autograd add into new memory."""
    code = """
import torch
w = torch.randn(1000, device="cuda", requires_grad=True)
def count(): return torch.cuda.memory_stats()["allocation.all.allocated"]
y = w * 1
loss = (y[:500].sum() + (y * 2).sum() + (y * 3).sum())
before = count(); loss.backward(); print(count() - before)
"""
    known, blind = virtual(code).check(), virtual(WITHOUT + code).check()

    assert known.stdout == blind.stdout
