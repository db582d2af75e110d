"""Cells that take a fraction of a second."""

from __future__ import annotations

from typing import Any

from vramscope.planning.cell import Cell

_PROGRAM = """
import torch
model = torch.nn.Linear(64, 64, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    model(torch.ones({rows}, 64, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def tiny_cell(rows: int = 1024, **how: Any) -> Cell:
    """A linear layer that is trained on so many rows."""
    return cell_of(_PROGRAM.format(rows=rows), **{"modules": ("torch", "torch._dynamo"), **how})


def cell_of(program: str, **how: Any) -> Cell:
    """A program on a card; without an optimizer, which would import the compiler, it is quick."""
    return Cell(program, "tiny", how.pop("card", "rtx-3060"), **how)
