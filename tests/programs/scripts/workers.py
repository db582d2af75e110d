"""A script whose batches are made by worker processes, forked and spawned."""

from __future__ import annotations

import torch
from measure import measured
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int):
        return torch.full((3, 16, 16), float(index)), index % 10


def train(context: str) -> None:
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Pictures(), batch_size=16, num_workers=2, pin_memory=True, multiprocessing_context=context)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    for context in ("fork", "spawn"):
        with measured(context):
            train(context)
