"""One training step after another of a ResNet-50 on made-up pictures, as a first script would have it."""

import argparse

import timm
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--batch-size", type=int, default=90)
parser.add_argument("--steps", type=int, default=100)
args = parser.parse_args()

model = timm.create_model("resnet50", num_classes=102).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(args.steps):
    images = torch.randn(args.batch_size, 3, 224, 224, device="cuda")
    labels = torch.randint(102, (args.batch_size,), device="cuda")
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.3f}")
