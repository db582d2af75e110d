"""Everyday programs that decide by values: language models, experts, detectors."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

pytestmark = [pytest.mark.virtual, pytest.mark.models]


def figures(text: str) -> list[int]:
    return [int(word) for word in re.findall(r"\d+", text)]


GENERATE = """
import torch, transformers
transformers.logging.set_verbosity_error()
from transformers import AutoModelForCausalLM, LlamaConfig
config = LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, vocab_size=1000)
model = AutoModelForCausalLM.from_config(config).cuda().eval()
ids = torch.randint(3, 1000, (2, 7)).cuda()
for ways in (dict(do_sample=False), dict(do_sample=True, top_p=0.9, temperature=0.7), dict(num_beams=3),
             dict(num_beams=2, do_sample=True), dict(cache_implementation="static", disable_compile=True)):
    out = model.generate(ids, attention_mask=torch.ones_like(ids), pad_token_id=0, max_new_tokens=11, **ways)
    print(tuple(out.shape))
print(len(set(out[:, 7:].flatten().tolist())))
"""


def test_generate_makes_exactly_the_new_tokens(virtual: Callable):
    pytest.importorskip("transformers")
    lines = virtual(GENERATE, "a100-80gb").check().stdout.splitlines()

    assert lines == ["(2, 18)"] * 5 + ["22"]


MASKS = """
import torch, transformers
transformers.logging.set_verbosity_error()
from transformers import AutoModel, BertConfig, LlamaConfig
sizes = dict(hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4)
for config in (LlamaConfig(**sizes, vocab_size=1000), BertConfig(**sizes, vocab_size=1000)):
    model, peaks = AutoModel.from_config(config).cuda(), []
    ids = torch.randint(3, 1000, (4, 512)).cuda()
    padded = torch.ones_like(ids); padded[1, 500:] = 0
    for more in ({}, {}, dict(attention_mask=torch.ones_like(ids)), dict(attention_mask=(ids != 0).long()),
                 dict(attention_mask=padded)):
        torch.cuda.reset_peak_memory_stats()
        model(input_ids=ids, **more).last_hidden_state.mean().backward(); model.zero_grad()
        peaks.append(torch.cuda.max_memory_allocated())
    print(*peaks)
"""


def test_a_full_mask_costs_what_no_mask_costs(virtual: Callable):
    pytest.importorskip("transformers")
    for line in virtual(MASKS, "a100-80gb").check().stdout.splitlines():
        _, bare, ones, compared, padded = figures(line)  # the first has no workspaces yet
        assert bare == ones == compared < padded


EXPERTS = """
import torch, transformers
transformers.logging.set_verbosity_error()
from transformers import AutoModelForCausalLM, MixtralConfig
config = MixtralConfig(hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8,
                       num_key_value_heads=4, vocab_size=8000, num_local_experts=8, num_experts_per_tok=2)
with torch.device("cuda"): model = AutoModelForCausalLM.from_config(config)
model.set_experts_implementation("eager")
opt = torch.optim.AdamW(model.parameters())
for _ in range(2):
    ids = torch.randint(0, 8000, (4, 512)).cuda()
    out = model(input_ids=ids, labels=ids); out.loss.backward(); opt.step(); opt.zero_grad()
print(sum(p not in opt.state for p in model.parameters()), torch.cuda.max_memory_allocated())
"""

BY_HAND = """
import ctypes
import vramscope.recording.values as values
values.install = lambda torch: None
import torch
nonzero, library = torch.library.get_kernel("aten::nonzero", "CUDA"), torch.library.Library("aten", "IMPL")
def counted(keyset, mask):
    experts, rows = 8, 4 * 512 * 2 // 8
    ctypes.CDLL(None).vs_answer(ctypes.c_int64(experts if mask.numel() == experts + 1 else rows))
    return nonzero.call_boxed(keyset, mask)
library.impl("nonzero", counted, "CUDA", with_keyset=True, allow_override=True)
"""


def test_every_expert_of_an_eager_mixture_runs(virtual: Callable):
    """The peak equals that of a run in which each expert is handed its 512 of 4,096 rows by hand."""
    pytest.importorskip("transformers")
    idle, peak_allocated_bytes = figures(virtual(EXPERTS, "a100-80gb").check().stdout)
    _, expected = figures(virtual(BY_HAND + EXPERTS, "a100-80gb").check().stdout)

    assert idle == 0
    assert peak_allocated_bytes == expected > 1.5e9


DETECTOR = """
import torch, torchvision
model = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=5)
model = model.cuda().train(); opt = torch.optim.SGD(model.parameters(), 0.01)
images = [torch.rand(3, 200, 300).cuda() for _ in range(2)]
targets = [dict(boxes=torch.tensor([[10.0, 20, 100, 190], [30, 40, 90, 120]]).cuda(),
                labels=torch.tensor([1, 2]).cuda()) for _ in images]
loss = sum(model(images, targets).values()); loss.backward(); opt.step()
print(torch.isfinite(loss).item(), [len(one["boxes"]) for one in model.eval()(images)])
"""


def test_a_torchvision_detector_trains_and_detects(virtual: Callable):
    pytest.importorskip("torchvision")
    ran = virtual(DETECTOR, "a100-80gb").check()

    assert ran.stdout == "True [100, 100]\n"
    assert "keep" in {entry["what"] for entry in ran.of("assumed")}


YOLO = """
import torch
from ultralytics.cfg import get_cfg
from ultralytics.nn.tasks import DetectionModel
model = DetectionModel("yolov8n.yaml", verbose=False).cuda().train(); model.args = get_cfg()
owner = torch.tensor([0.0, 0, 0, 1, 3, 3, 3, 3])
batch = dict(img=torch.rand(4, 3, 128, 128).cuda(), batch_idx=owner.cuda(), cls=torch.zeros(8, 1).cuda(),
             bboxes=(torch.rand(8, 4) * 0.4 + 0.2).cuda())
loss, _ = model(batch); loss.sum().backward(); print(tuple(loss.shape))
"""


def test_yolo_takes_its_loss(virtual: Callable, tmp_path):
    pytest.importorskip("ultralytics")
    ran = virtual(YOLO, "a100-80gb", YOLO_CONFIG_DIR=str(tmp_path)).check()

    assert ran.stdout.splitlines()[-1] == "(3,)"
