"""A deep stack of layers whose activations are made again in backward."""

from __future__ import annotations

import torch
from torch.utils.checkpoint import checkpoint


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(1024, 256))

    def forward(self, x):
        return x + checkpoint(self.layers, x, use_reentrant=False)


def train() -> None:
    model = torch.nn.Sequential(*(Block() for _ in range(6))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randn(64, 32, 256, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
