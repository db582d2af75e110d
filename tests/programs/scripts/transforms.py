"""torch.func over modules, double backward, custom functions, outputs in containers, hooks: what a recorder may trip over."""

from __future__ import annotations

import torch
from measure import measured
from torch.func import functional_call, grad, hessian, jacrev, vmap


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Nested(torch.nn.Module):
    def forward(self, x):
        return {"all": [Double.apply(x)], "rest": (x, None)}


def transforms(model: torch.nn.Module) -> None:
    weights = {name: weight.detach() for name, weight in model.named_parameters()}

    def loss(weights, x, y):
        return (functional_call(model, weights, (x.unsqueeze(0),)).squeeze() - y) ** 2

    x, y = torch.randn(64, 16, device="cuda"), torch.randn(64, device="cuda")
    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
    assert gradients["0.weight"].shape == (64, 32, 16)
    assert jacrev(lambda x: functional_call(model, weights, (x,)))(x[:2]).shape == (2, 1, 2, 16)
    assert hessian(lambda x: functional_call(model, weights, (x,)).sum())(x[:2]).shape == (2, 16, 2, 16)


def penalty(model: torch.nn.Module) -> None:
    x = torch.randn(64, 16, device="cuda", requires_grad=True)
    out = model(x).sum()
    (slope,) = torch.autograd.grad(out, x, create_graph=True)
    (slope.norm() + out).backward()


def refused(model: torch.nn.Module) -> None:
    first, _ = torch.randn(2, 16, device="cuda", requires_grad=True).clone().unbind(0)
    caught = ""
    try:
        first.mul_(2)
        model(first.unsqueeze(0)).sum().backward()
    except RuntimeError as error:
        caught = str(error)
    assert "is a view and is being modified inplace" in caught  # as torch forbids it, not otherwise


if __name__ == "__main__":
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).cuda()
    with measured("transforms"):
        transforms(model)
    with measured("penalty"):
        penalty(model)
    refused(model)
    Nested()(torch.randn(4, device="cuda", requires_grad=True))["all"][0].sum().backward()
    model.register_forward_hook(lambda module, given, out: out + 1)
    model.register_full_backward_hook(lambda module, given, out: None)
    model(torch.randn(4, 16, device="cuda", requires_grad=True)).sum().backward()
