"""torch.compile: a training step, and a forward pass whose batch may be of any size."""

from __future__ import annotations

import time

import torch
from measure import measured, say


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 32, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(32)
        self.wide, self.narrow = torch.nn.Linear(32, 512), torch.nn.Linear(512, 10)

    def forward(self, x):
        x = torch.nn.functional.gelu(self.norm(self.conv(x))).mean((2, 3))
        return self.narrow(torch.nn.functional.silu(self.wide(x)).square() + 1)


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    x, y = torch.randn(16, 3, 64, 64, device="cuda"), torch.randint(0, 10, (16,), device="cuda")
    for _ in range(3):
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()


def main() -> None:
    eager = Net().cuda()
    with measured("eager"):
        train(eager, torch.optim.SGD(eager.parameters(), lr=0.1))
    compiled = Net().cuda()
    began = time.monotonic()
    with measured("compiled"):
        train(torch.compile(compiled), torch.optim.SGD(compiled.parameters(), lr=0.1))
    say("compiling", seconds=time.monotonic() - began)
    dynamic = torch.compile(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 8)).cuda(), dynamic=True)
    with measured("dynamic"), torch.no_grad():
        for n in (8, 24, 40):
            assert dynamic(torch.randn(n, 64, device="cuda")).shape == (n, 8)
    say("graphs", breaks=sum(torch._dynamo.utils.counters["graph_break"].values()))


if __name__ == "__main__":
    main()
