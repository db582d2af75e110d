"""A GPT-2 small AdamW step under torch's own MemTracker; what it counts is printed."""

import json
import sys

import torch
from torch.distributed._tools.mem_tracker import MemTracker
from transformers import GPT2Config, GPT2LMHeadModel


def step(model, optimizer, tokens) -> None:
    model(tokens, labels=tokens).loss.backward()
    optimizer.step()


def main() -> None:
    model = GPT2LMHeadModel(GPT2Config()).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, 50257, (1, 128), device="cuda")
    if "alone" in sys.argv:
        step(model, optimizer, tokens)
        return
    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    with tracker:
        step(model, optimizer, tokens)
    counted = tracker.get_tracker_snapshot("current")[torch.device("cuda", 0)]
    print(json.dumps({str(getattr(kind, "value", kind)): size for kind, size in counted.items()}))


if __name__ == "__main__":
    main()
