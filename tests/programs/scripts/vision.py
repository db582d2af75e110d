"""torchvision: detectors on pictures with boxes, and a channels_last segmentation model."""

from __future__ import annotations

import torch
import torchvision
from measure import bytes_of, measured, say


def targets(n: int) -> list[dict[str, torch.Tensor]]:
    """Boxes and labels as a data loader hands them over: made on the host."""
    corners = torch.rand(n, 4, 2) * 100
    boxes = torch.cat([corners, corners + torch.tensor([50.0, 60.0])], -1).cuda()
    labels = torch.randint(1, 5, (n, 4)).cuda()
    return [{"boxes": b, "labels": c} for b, c in zip(boxes, labels, strict=True)]


def train(model: torch.nn.Module, loss_of) -> None:
    model.cuda().train()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01, momentum=0.9)
    for _ in range(2):
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def detection(model: torch.nn.Module) -> torch.Tensor:
    pictures = [torch.rand(3, 200, 240, device="cuda") for _ in range(2)]
    losses = model(pictures, targets(2))
    return sum(losses.values())


def segmentation(model: torch.nn.Module) -> torch.Tensor:
    images = torch.rand(4, 3, 128, 128, device="cuda").contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, 5, (4, 128, 128), device="cuda")
    out = model(images)
    loss = torch.nn.functional.cross_entropy(out["out"], labels, ignore_index=255)
    if "aux" in out:
        loss = loss + 0.5 * torch.nn.functional.cross_entropy(out["aux"], labels, ignore_index=255)
    return loss


def main() -> None:
    found, segmented = torchvision.models.detection, torchvision.models.segmentation
    plain = {"weights": None, "weights_backbone": None, "num_classes": 5}
    with measured("fasterrcnn"):
        model = found.fasterrcnn_resnet50_fpn(**plain, min_size=200, max_size=300)
        train(model, detection)
    say("fasterrcnn model", parameter_bytes=bytes_of(model))
    with measured("fasterrcnn inference"), torch.inference_mode():
        answer = model.eval()([torch.rand(3, 200, 240, device="cuda")])
        assert len(answer) == 1 and answer[0]["boxes"].shape[1] == 4
    with measured("ssdlite"):
        train(found.ssdlite320_mobilenet_v3_large(**plain), detection)
    with measured("lraspp"):
        train(segmented.lraspp_mobilenet_v3_large(**plain).to(memory_format=torch.channels_last), segmentation)
    with measured("deeplabv3"):
        train(
            segmented.deeplabv3_mobilenet_v3_large(**plain, aux_loss=True).to(memory_format=torch.channels_last), segmentation
        )


if __name__ == "__main__":
    main()
