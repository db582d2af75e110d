"""A training loop as timm's train.py has it: EMA, mixed precision, channels_last, mixup, clipping, validation."""

from __future__ import annotations

import contextlib

import timm
import torch
from measure import bytes_of, measured, say
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import AverageMeter, ModelEmaV2, NativeScaler, accuracy, dispatch_clip_grad

CLASSES, SIZE, BATCH = 100, 96, 32
DEVICE = torch.device("cuda")


def loader(batches: int):
    for _ in range(batches):
        yield torch.randn(BATCH, 3, SIZE, SIZE), torch.randint(0, CLASSES, (BATCH,))


def train_one_epoch(model, ema, optimizer, scheduler, autocast, scaler, batches: int = 3) -> None:
    mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=CLASSES)
    loss_of = SoftTargetCrossEntropy()
    losses = AverageMeter()
    model.train()
    for update, (images, target) in enumerate(loader(batches)):
        images = images.to(DEVICE, memory_format=torch.channels_last)
        images, target = mixup(images, target.to(DEVICE))
        with autocast():
            loss = loss_of(model(images), target)
        optimizer.zero_grad()
        if scaler is not None:
            scaler(loss, optimizer, clip_grad=1.0, clip_mode="norm", parameters=model.parameters())
        else:
            loss.backward()
            dispatch_clip_grad(model.parameters(), 1.0, mode="norm")
            optimizer.step()
        ema.update(model)
        losses.update(loss.item(), images.size(0))
        scheduler.step_update(num_updates=update, metric=losses.avg)


@torch.no_grad()
def validate(model, autocast) -> None:
    top1, top5 = AverageMeter(), AverageMeter()
    model.eval()
    for images, target in loader(2):
        images, target = images.to(DEVICE, memory_format=torch.channels_last), target.to(DEVICE)
        with autocast():
            output = model(images)
        first, fifth = accuracy(output, target, topk=(1, 5))
        top1.update(first.item(), images.size(0))
        top5.update(fifth.item(), images.size(0))
    assert 0 <= top1.avg <= top5.avg <= 100, (top1.avg, top5.avg)


def main(amp: bool) -> None:
    with measured("amp" if amp else "fp32"):
        model = timm.create_model("resnet18", num_classes=CLASSES, drop_rate=0.1).to(DEVICE, memory_format=torch.channels_last)
        optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
        scheduler, _epochs = create_scheduler_v2(optimizer, sched="cosine", num_epochs=1, updates_per_epoch=3)
        ema = ModelEmaV2(model, decay=0.99)
        autocast = (lambda: torch.autocast("cuda", dtype=torch.float16)) if amp else contextlib.nullcontext
        train_one_epoch(model, ema, optimizer, scheduler, autocast, NativeScaler() if amp else None)
        say("states", allocated_bytes=torch.cuda.memory_allocated(), parameter_bytes=bytes_of(model))
        validate(model, autocast)
        validate(ema.module, autocast)


if __name__ == "__main__":
    for amp in (False, True):
        main(amp)
