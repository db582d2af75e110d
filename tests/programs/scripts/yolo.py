"""ultralytics: YOLOv8n from its description, with its own loss."""

from __future__ import annotations

import torch
from measure import bytes_of, measured, say
from ultralytics.cfg import get_cfg
from ultralytics.nn.tasks import DetectionModel
from ultralytics.utils.loss import v8DetectionLoss


def batch(images: int, boxes: int) -> dict[str, torch.Tensor]:
    return {
        "img": torch.rand(images, 3, 160, 160, device="cuda"),
        "batch_idx": torch.arange(images).repeat_interleave(boxes).cuda(),
        "cls": torch.randint(0, 80, (images * boxes, 1)).float().cuda(),
        "bboxes": (torch.rand(images * boxes, 4) * 0.5 + 0.2).cuda(),
    }


def main() -> None:
    with measured("yolo"):
        model = DetectionModel("yolov8n.yaml", nc=80, verbose=False).cuda()
        model.args = get_cfg()
        loss_of = v8DetectionLoss(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        scaler = torch.amp.GradScaler("cuda")
        for _ in range(3):
            given = batch(4, 5)
            with torch.autocast("cuda"):
                loss, items = loss_of(model(given["img"]), given)
            scaler.scale(loss.sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            assert len(items) == 3 and all(float(x) == float(x) for x in items.values())
    say("model", parameter_bytes=bytes_of(model))


if __name__ == "__main__":
    main()
