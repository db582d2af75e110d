"""One Adam step of a ResNet-50, a stage at a time: what is reserved after each.

    vramscope predict --gpu rtx-3060 --steps all -o stages.vram examples/resnet50_stages.py
    vramscope show stages.vram --stages

Outside of vramscope a mark does nothing.  The cache is emptied after each stage, so that what
is reserved at its end is what its live tensors hold and what it took itself."""

import argparse

import timm
import torch
from fvcore.nn import ActivationCountAnalysis, FlopCountAnalysis, flop_count_table

from vramscope import mark

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--model", default="resnet50")
parser.add_argument("--batch-size", type=int, default=90)
parser.add_argument("--size", type=int, default=224)
args = parser.parse_args()


def ended(stage):
    """Names what has just happened, and gives the cache back."""
    mark(stage)
    torch.cuda.empty_cache()


def build():
    """The model, on the card."""
    return timm.create_model(args.model, num_classes=102).cuda()


x = torch.randn(args.batch_size, 3, args.size, args.size).cuda()
ended("x")
model = build()
ended("model 1")
second = build()
ended("model 2")
del second
ended("model 2 deleted")
optimizer = torch.optim.Adam(model.parameters())
ended("optimizer")
flop_count_table(FlopCountAnalysis(model, x), activations=ActivationCountAnalysis(model, x))
ended("fvcore")
with torch.no_grad():
    model(x)
ended("forward, no_grad")
out = model(x)
ended("forward")
loss = torch.nn.CrossEntropyLoss()(out, torch.randn(args.batch_size, 102).cuda())
ended("loss")
loss.backward()
ended("backward")
optimizer.step()
ended("step")
optimizer.zero_grad()
ended("zero_grad")
