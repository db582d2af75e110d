"""Answers about programs that ran on a virtual card, held against what happens when their advice is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from vramscope.analysis.explain import explain
from vramscope.analysis.explain.finding import Finding, Remedy
from vramscope.run.curves import allocated_curve
from vramscope.run.run import Run
from vramscope.run.trace import Trace

MIB = 1 << 20
LAYERS = """
import contextlib, torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
torch.manual_seed(0)

def layers(count, width=1024):
    return [nn.Sequential(nn.Linear(width, width, bias=False), nn.ReLU()) for _ in range(count)]
"""
TRAIN = """
model = nn.Sequential(*layers(8)).cuda()
optimizer = torch.optim.Adam(model.parameters(), **{})
for _ in range(3):
    loss = model(torch.randn(64, 1024, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def ran(virtual) -> Callable[..., Trace]:
    """The history of a program that begins with LAYERS."""

    def run(code: str, **how: object) -> Trace:
        (trace,) = virtual(LAYERS + code, **how).check().traces
        return trace

    return run


def peak(trace: Trace) -> int:
    return int(allocated_curve(trace).max())


def answers(trace: Trace, *others: Trace) -> dict[str, Finding]:
    run, *rest = (Run(None, traces=(each,)) for each in (trace, *others))
    return {each.key: each for each in explain(run, rest)}


def saved(found: Finding, change: str) -> int:
    (remedy,) = (each for each in found.remedies if each.change.startswith(change))
    assert remedy.saved_bytes is not None
    return remedy.saved_bytes


def every_remedy(trace: Trace) -> list[Remedy]:
    return [remedy for each in answers(trace).values() for remedy in each.remedies]


def serious(found: Iterable[Finding]) -> set[str]:
    return {each.key for each in found if each.severity == "wrong"}


@pytest.mark.parametrize("change", ["foreach=False", "fused=True"])
def test_another_way_of_stepping_to_the_byte(ran, change: str):
    name, _, value = change.partition("=")
    before, after = ran(TRAIN.format({})), ran(TRAIN.format({name: value == "True"}))

    assert saved(answers(before)["lower"], change) == peak(before) - peak(after) > 0


def test_zero_grad_that_keeps_the_gradients(ran):
    code = """
model = nn.Sequential(*layers(8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(16384, 1024, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none={})
"""
    before, after = ran(code.format(False)), ran(code.format(True))

    found = answers(before)["gradients_through_forward"]
    assert saved(found, "optimizer.zero_grad") == pytest.approx(peak(before) - peak(after), rel=0.05)
    assert "gradients_through_forward" not in answers(after)


def test_results_that_wait_for_the_next_ones(ran):
    """The loss is made within the model, as transformers' models do, while the last step's logits are there."""
    code = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(*layers(2)), nn.Linear(1024, 16384)
    def forward(self, x):
        logits = self.head(self.body(x))
        return logits, cross_entropy(logits.exp(), torch.zeros(len(x), dtype=torch.long, device="cuda"))

model = Model().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    logits, loss = model(torch.randn(1024, 1024, device="cuda"))
    logits.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    {}
"""
    before, after = ran(code.format("")), ran(code.format("del logits, loss"))

    assert saved(answers(before)["lower"], "del the step's results") == pytest.approx(
        peak(before) - peak(after), rel=0.02
    )


def test_checkpointed_blocks(ran):
    code = """
from torch.utils.checkpoint import checkpoint

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(512, 2048), nn.Linear(2048, 512)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = nn.ModuleList(Block() for _ in range(8))
    def forward(self, x):
        for block in self.h:
            x = {}
        return x

model = Model().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.randn(4096, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    before, after = (
        ran(code.format("block(x)")),
        ran(code.format("checkpoint(block, x, use_reentrant=False)")),
    )

    found = answers(before)["lower"]
    assert saved(found, "gradient checkpointing of Model.h.0 to 7") == pytest.approx(
        peak(before) - peak(after), rel=0.05
    )
    assert not any("checkpointing" in each.change for each in every_remedy(after))


FREEZE = """
import torchvision
model = torchvision.models.resnet18().cuda()
for layer in list(model.children())[:-1]:
    {}
optimizer = torch.optim.Adam(p for p in model.parameters() if p.requires_grad)
for _ in range(2):
    images, labels = torch.randn(8, 3, 128, 128, device="cuda"), torch.zeros(8, dtype=torch.long, device="cuda")
    cross_entropy(model(images), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_freeze_that_freezes_nothing(ran):
    pytest.importorskip("torchvision")
    before, after = (
        ran(FREEZE.format(each)) for each in ("layer.requires_grad = False", "layer.requires_grad_(False)")
    )

    found = answers(before)["freeze_freezes_nothing"]
    assert "11,176,512 parameters" in found.question
    assert found.where[0] == "ResNet.conv1"
    assert saved(found, "module.requires_grad_(False)") == pytest.approx(peak(before) - peak(after), rel=0.1)
    assert serious(answers(after).values()) == set()


def test_losses_that_are_collected(ran):
    """mse_loss's result has the storage of all its squares: 1024 × 1024 numbers."""
    code = """
model, kept = nn.Sequential(*layers(2)).cuda(), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    output = model(torch.randn(1024, 1024, device="cuda"))
    loss = mse_loss(output, torch.zeros_like(output))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.append({})
"""
    found = answers(ran(code.format("loss")))["leak"]

    assert found.question == "Why does memory grow by 4.00 MiB each step?"
    line = (LAYERS + code).splitlines().index("    loss = mse_loss(output, torch.zeros_like(output))") + 1
    assert found.where == (f"<string>:{line} in <module>",)
    assert "leak" not in answers(ran(code.format("loss.item()")))


EVALUATE = """
model = nn.Sequential(*layers(8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model.train()
    model(torch.randn(512, 1024, device="cuda")).sum().backward()
    optimizer.step()
    {zero}
    model.eval()
    with {context}:
        model(torch.randn(8192, 1024, device="cuda"))
    {later}
"""


def evaluate(context: str = "torch.no_grad()", zero: str = "", later: str = "optimizer.zero_grad()") -> str:
    return EVALUATE.format(zero=zero, context=context, later=later)


def test_gradients_through_an_evaluation(ran):
    before, after = ran(evaluate()), ran(evaluate(zero="optimizer.zero_grad()", later=""))

    found = answers(before)["gradients_through_evaluation"]
    assert found.question == "Why are 32.0 MiB of gradients held through the evaluation?"
    assert saved(found, "optimizer.zero_grad()") == peak(before) - peak(after)
    assert "gradients_through_evaluation" not in answers(after)


def test_an_evaluation_with_gradients_recorded(ran):
    before, after = ran(evaluate("contextlib.nullcontext()")), ran(evaluate())

    found = answers(before)["forward_without_backward"]
    assert saved(found, "torch.no_grad()") == pytest.approx(peak(before) - peak(after), rel=0.1)
    assert "forward_without_backward" not in answers(after)


def test_a_program_that_only_infers(ran):
    code = """
model = nn.Sequential(*layers(8)).cuda().eval()
with {}:
    for _ in range(3):
        output = model(torch.randn(8192, 1024, device="cuda"))
"""
    before, after = ran(code.format("contextlib.nullcontext()")), ran(code.format("torch.no_grad()"))

    found = answers(before)["forward_without_backward"]
    assert saved(found, "torch.no_grad()") == pytest.approx(peak(before) - peak(after), rel=0.15)
    assert "forward_without_backward" not in answers(after)


def test_autocast_around_the_loop(ran):
    code = """
model = nn.Sequential(*layers(4)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
outer, inner = {}
with outer():
    for _ in range(4):
        with inner():
            loss = model(torch.randn(64, 1024, device="cuda")).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
    cast = 'lambda: torch.autocast("cuda", torch.bfloat16)'
    around = answers(ran(code.format(f"{cast}, contextlib.nullcontext")))
    within = answers(ran(code.format(f"contextlib.nullcontext, {cast}")))

    assert around["autocast_cache"].question == "Why are 8.00 MiB of autocast's casts never given back?"
    assert "autocast_cache" not in within


def test_the_first_step_of_adam(ran):
    """Eight weights of 4 MiB have 64 MiB of states from the second step on."""
    found = answers(ran(TRAIN.format({}).replace("torch.randn(64", "torch.randn(32768")))["first_step"]

    assert [each.size_bytes for each in found.evidence if each.label == "optimizer states"] == [64 * MIB]


def test_expandable_segments(ran):
    code = """
model = nn.Sequential(*layers(4)).cuda()
for rows in (3000, 5000, 7000, 9000):
    model(torch.randn(rows, 1024, device="cuda")).sum().backward()
    model.zero_grad()
"""
    before, after = ran(code), ran(code, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")

    found = answers(before, after)["reserved"]
    assert sum(each.size_bytes for each in found.evidence) == found.stake_bytes
    assert [each.saved_bytes for each in found.remedies] == [reserved(before) - reserved(after)]
    assert [each.label for each in answers(after)["reserved"].evidence] == ["between blocks"]


def reserved(trace: Trace) -> int:
    from vramscope.run.curves import reserved_curve

    return int(reserved_curve(trace).max())


GPT2 = """
import os
os.environ["HF_HUB_OFFLINE"] = "1"
from transformers import GPT2Config, GPT2LMHeadModel
from torch.utils.checkpoint import checkpoint

model = GPT2LMHeadModel(GPT2Config(n_layer=2)).cuda()
optimizer = torch.optim.AdamW(model.parameters())

def whole(tokens):
    return model(tokens, labels=tokens, use_cache=False).loss

def part(hidden, labels):
    return cross_entropy(model.lm_head(hidden), labels, reduction="sum")

def chunked(tokens):
    hidden = model.transformer(tokens, use_cache=False).last_hidden_state.reshape(-1, 768)
    pairs = zip(hidden.chunk(8), tokens.reshape(-1).chunk(8))
    return sum(checkpoint(part, *pair, use_reentrant=False) for pair in pairs)

for _ in range(2):
    {}(torch.zeros(4, 1024, dtype=torch.long, device="cuda")).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_logits_of_a_language_model(ran):
    pytest.importorskip("transformers")
    before, after = ran(GPT2.format("whole"), gpu="a100-80gb"), ran(GPT2.format("chunked"), gpu="a100-80gb")

    found = answers(before)["logits"]
    assert found.where == ("GPT2LMHeadModel.lm_head",)
    assert found.stake_bytes >= 3 * 4 * 1023 * 50257 * 4
    assert saved(found, "a loss that makes the logits in chunks") == pytest.approx(
        peak(before) - peak(after), rel=0.1
    )
    assert "logits" not in answers(after)
    assert serious(answers(before).values()) == set()  # its head shares the embedding's weight


LORA = """
import os
os.environ["HF_HUB_OFFLINE"] = "1"
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(n_layer=2, vocab_size=1000)).cuda()
model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", target_modules=["c_attn"], fan_in_fan_out=True))
{}
optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
for _ in range(2):
    tokens = torch.zeros(2, 128, dtype=torch.long, device="cuda")
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_lora_whose_base_trains(ran):
    pytest.importorskip("peft")
    before, after = ran(LORA.format("model.requires_grad_(True)")), ran(LORA.format(""))

    found = answers(before)["lora_base_trains"]
    really = peak(before) - peak(after)
    assert 0.75 * really < saved(found, "the base's parameters") <= really
    assert serious(answers(after).values()) == set()
