"""What a program copied to the card, filled or computed there from known values reads back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.virtual

CHECKS = """
import torch, torch.nn.functional as F
d = "cuda"
def check(name, found, wanted):
    print("ok" if found == wanted else f"{name}: {found} instead of {wanted}")
"""

KNOWN = (
    CHECKS
    + """
check("ones", torch.ones(3, device=d).tolist(), [1.0] * 3)
check("to and fro", torch.tensor([3, 1, 2], device=d).cpu().tolist(), [3, 1, 2])
n = 0
while not (torch.full((1,), n, device=d) >= 8).all(): n += 1
check("loop", n, 8)

ids = torch.arange(12).view(3, 4).to(d)
check("arithmetic", (ids * 2 + 1).sum().item(), 144)
check("views", ids.t()[1].tolist(), [1, 5, 9])
check("floor division", (ids // 5).flatten().tolist(), [0] * 5 + [1] * 5 + [2] * 2)
check("remainder by a number", (ids % 5)[2].tolist(), [3, 4, 0, 1])
check("number first", (11 - ids)[0].tolist(), [11, 10, 9, 8])
check("types are promoted as usual", str((ids + 0.5).dtype), "torch.float32")
check("zero dimensions too", str((torch.tensor(1.0, device=d).half() * 2.0).dtype), "torch.float16")
ids[1] = ids[0]; ids[0, 0] += 5
check("in place", ids.tolist(), [[5, 1, 2, 3], [0, 1, 2, 3], [8, 9, 10, 11]])
check("unknown writes are noticed", (ids.bitwise_left_shift_(1), ids.tolist())[1], [[0] * 4] * 3)

mask = torch.ones(100, dtype=torch.bool, device=d); mask[3:7] = False
x = torch.randn(100, 8, device=d)
check("x[mask]", tuple(x[mask].shape), (96, 8))
check("masked_select", x[:, 0].masked_select(mask).numel(), 96)
check("nonzero", mask.nonzero()[:4].flatten().tolist(), [0, 1, 2, 7])
check("where", torch.where(~mask)[0].tolist(), [3, 4, 5, 6])
y = torch.zeros(100, dtype=torch.long, device=d); y[mask] = 3
check("x[mask] = y", y.sum().item(), 288)
big = torch.ones(3 << 20, dtype=torch.long, device=d)
check("constants of any size", ((big == 1).all().item(), big.sum().item()), (True, 3 << 20))

a = torch.tensor([1, 1, 2, 5, 1], device=d)
check("unique", [t.tolist() for t in a.unique(return_inverse=True, return_counts=True)],
      [[1, 2, 5], [0, 0, 1, 2, 0], [3, 1, 1]])
check("unique_consecutive", a.unique_consecutive().tolist(), [1, 2, 5, 1])
check("bincount", a.bincount().tolist(), [0, 3, 1, 0, 0, 1])
check("bincount, minlength", a.bincount(minlength=9).numel(), 9)
check("repeat_interleave", x[:3].repeat_interleave(torch.tensor([2, 0, 3], device=d), dim=0).shape[0], 5)
check("one_hot", F.one_hot(a).sum(0).tolist(), [0, 3, 1, 0, 0, 1])
check("sort", [t.tolist() for t in a.sort(stable=True)], [[1, 1, 1, 2, 5], [0, 1, 4, 2, 3]])
check("cat", torch.cat([a, a[:1]]).tolist(), [1, 1, 2, 5, 1, 1])
check("cumsum", a.cumsum(0).tolist(), [1, 2, 4, 9, 10])
check("isin", torch.isin(a, torch.tensor([5, 2], device=d)).tolist(), [False, False, True, True, False])
check("equal", (torch.equal(a, a.clone()), torch.equal(a, a + 1)), (True, False))
check("tril", torch.ones(2, 2, dtype=torch.bool, device=d).tril().tolist(), [[True, False], [True, True]])
check("scatter", torch.zeros(3, dtype=torch.long, device=d).scatter_(0, a[3:4] - 4, 7).tolist(), [0, 7, 0])
check("permuted", a.view(5, 1).expand(5, 2).t().contiguous()[1].tolist(), [1, 1, 2, 5, 1])
check("randperm is one", sorted(torch.randperm(9, device=d).tolist()), list(range(9)))
r = torch.randint(3, 6, (50,), device=d)
check("randint keeps its bounds", (3 <= r.min().item(), r.max().item() < 6), (True, True))

with torch.inference_mode():
    q = torch.arange(3, device=d); q[0] = 9
    check("inference mode", q.tolist(), [9, 1, 2])
check("and after it", (q + 1).tolist(), [10, 2, 3])
check("vmap", torch.func.vmap(lambda row: row.sum())(torch.arange(6, device=d).view(2, 3)).tolist(), [3, 12])
total = torch.tensor(0.0, device=d); total += 1; total += 2
check("small numbers", total.item(), 3.0)
gathered = torch.take_along_dim(torch.arange(12, device=d).view(3, 4), torch.zeros(2, 1, device=d).long(), 0)
gathered[:, 3] = torch.tensor([40, 41]).to(d)
check("late, after writes to a part", gathered[:, :4].reshape(-1, 4)[:, -1:].any(-1).tolist(), [True, True])

import vramscope.recording.values as values
check("nothing was assumed", [(a.what, a.value) for a in values.assumptions()],
      [("int", "12 values copied to the host: 0")])
"""
)


def test_known_values_read_back(virtual: Callable):
    ran = virtual(KNOWN, "a100-80gb").check()

    wrong = [line for line in ran.stdout.splitlines() if line != "ok"]
    assert wrong == []
    assert ran.stdout.count("ok") == 40


STORAGES = (
    CHECKS
    + """
from vramscope.recording.values.known import _noted, values_of
before = torch.cuda.memory_allocated()
a = torch.zeros(1 << 18, dtype=torch.long, device=d)
b = a[3:5]; del a
check("a view keeps what is known", values_of(b).tolist(), [0, 0])
del b
check("known values hold no memory", torch.cuda.memory_allocated(), before)
check("and are forgotten with it", len(_noted), 0)
c = torch.empty(1 << 18, dtype=torch.long, device=d)
check("new memory at the same place is unknown", values_of(c), None)
counter = torch.zeros((), dtype=torch.long, device=d)
for _ in range(500): counter = counter + torch.arange(1, 2, device=d).sum()
check("a long chain ends", counter.item(), 500)
"""
)


def test_what_is_known_goes_with_its_storage(virtual: Callable):
    ran = virtual(STORAGES, "a100-80gb").check()

    assert set(ran.stdout.split("\n")) <= {"ok", ""}
    assert ran.of("assumed") == []


ELSEWHERE = """
import torch
from torch.utils.data import DataLoader, TensorDataset
print([batch[0].cuda().tolist() for batch in DataLoader(TensorDataset(torch.arange(8)), batch_size=4, num_workers=2)])
from torch._subclasses import FakeTensorMode
with FakeTensorMode(): print(tuple((torch.ones(4, device="cuda") + 1).shape))
print(torch.ones(3, device="meta").sum().device)
print(torch.sparse_coo_tensor(torch.tensor([[0], [1]]), torch.ones(1), (2, 2)).cuda().coalesce().shape)
print(torch.func.grad(lambda a: (a * 2).sum())(torch.ones(3, device="cuda")).shape)
m = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)).cuda()
step, opt = torch.compile(m), torch.optim.AdamW(m.parameters())
for _ in range(2):
    labels = torch.randint(0, 10, (8,)).cuda()
    loss = torch.nn.functional.cross_entropy(step(torch.randn(8, 64, device="cuda")), labels)
    loss.backward(); opt.step(); opt.zero_grad()
print(loss.item(), len(opt.state))
"""


def test_workers_fakes_transforms_and_compiled_code(virtual: Callable):
    ran = virtual(ELSEWHERE, "a100-80gb").check()

    assert ran.stdout.splitlines() == [
        "[[0, 1, 2, 3], [4, 5, 6, 7]]",
        "(4,)",
        "meta",
        "torch.Size([2, 2])",
        "torch.Size([3])",
        "1.0 4",
    ]
