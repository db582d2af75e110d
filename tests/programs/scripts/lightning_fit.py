"""A Lightning fit with validation."""

from __future__ import annotations

import warnings

import lightning as L
import torch
import torch.nn.functional as F
from measure import bytes_of, measured, say
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


class Classifier(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10))

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("accuracy", (self.net(x).argmax(-1) == y).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


def main() -> None:
    data = TensorDataset(torch.randn(256, 512), torch.randint(0, 10, (256,)))
    trainer = L.Trainer(
        accelerator="gpu",
        devices=1,
        max_steps=4,
        precision="16-mixed",
        gradient_clip_val=1.0,
        val_check_interval=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Classifier()
    with measured("fit"):
        trainer.fit(model, DataLoader(data, batch_size=32, num_workers=2), DataLoader(data, batch_size=32))
    assert trainer.global_step == 4
    say("model", parameter_bytes=bytes_of(model))


if __name__ == "__main__":
    main()
