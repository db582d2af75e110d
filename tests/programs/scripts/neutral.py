"""Prints torch's own peaks after training one of three models: they must not depend on who watches."""

from __future__ import annotations

import sys

import torch
from measure import say


def resnet() -> None:
    import torchvision

    model = torchvision.models.resnet18(num_classes=10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(3):
        images, labels = torch.randn(16, 3, 96, 96, device="cuda"), torch.randint(0, 10, (16,), device="cuda")
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def gpt2() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=2000, n_positions=128, n_embd=256, n_layer=4, n_head=4)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        ids = torch.randint(0, 2000, (4, 128), device="cuda")
        loss = model(ids, labels=ids).loss  # without a mask: to be read, it would have to be known
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def checkpointed() -> None:
    from checkpointed import train

    train()


if __name__ == "__main__":
    {"resnet": resnet, "gpt2": gpt2, "checkpointed": checkpointed}[sys.argv[1]]()
    say(
        sys.argv[1],
        peak_allocated_bytes=torch.cuda.max_memory_allocated(),
        peak_reserved_bytes=torch.cuda.max_memory_reserved(),
        allocated_bytes=torch.cuda.memory_allocated(),
        allocations=torch.cuda.memory_stats()["allocation.all.allocated"],
        segments=torch.cuda.memory_stats()["segment.all.allocated"],
    )
