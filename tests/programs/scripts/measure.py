"""What the programs here print: one JSON line for each of their parts."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Iterator

import torch


def say(name: str, **facts: float) -> None:
    print(json.dumps({"name": name, **facts}), flush=True)


@contextlib.contextmanager
def measured(name: str, **facts: float) -> Iterator[None]:
    """Prints the peak of a part, over what was there before it; each pays for its own cuBLAS work spaces."""
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    yield
    torch.cuda.synchronize()
    say(name, peak_allocated_bytes=torch.cuda.max_memory_allocated() - before, **facts)


def bytes_of(model: torch.nn.Module) -> int:
    """The parameters' size."""
    return sum(p.numel() * p.element_size() for p in model.parameters())
