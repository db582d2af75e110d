"""nn.DataParallel over two cards."""

from __future__ import annotations

import torch
from measure import bytes_of, say


def main() -> None:
    assert torch.cuda.device_count() == 2
    net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
    model = torch.nn.DataParallel(net)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        x = torch.randn(64, 1024, device="cuda")
        out = model(x)
        assert out.shape == (64, 1024)
        optimizer.zero_grad()
        out.square().mean().backward()
        optimizer.step()
    for device in range(2):
        say(f"card {device}", peak_allocated_bytes=torch.cuda.max_memory_allocated(device))
    say("model", parameter_bytes=bytes_of(net))


if __name__ == "__main__":
    main()
