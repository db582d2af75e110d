"""accelerate: fp16 with its scaler, gradients accumulated over batches, metrics gathered."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from measure import bytes_of, measured, say
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    set_seed(0)
    accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=4)
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    loader = DataLoader(TensorDataset(torch.randn(512, 256), torch.randint(0, 10, (512,))), batch_size=32, shuffle=True)
    with measured("accelerate"):
        model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            gathered, _ = accelerator.gather_for_metrics((loss.detach(), y))
            assert gathered.item() == gathered.item()
    assert not optimizer.step_was_skipped
    say("model", parameter_bytes=bytes_of(model))


if __name__ == "__main__":
    main()
