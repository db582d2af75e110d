"""One training step, autograd's thread and all, and the end: nothing of it may crash on the way out."""

from __future__ import annotations

import torch

model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 4)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
model(torch.randn(2, 3, 8, 8, device="cuda")).square().mean().backward()
optimizer.step()
print("done")
