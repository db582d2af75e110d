"""The rest of cuDNN's older API: batch norm, CTC, grid sampling."""

from __future__ import annotations

import pytest

from vramscope.cards import find_card

BATCH_NORM = """
import torch
norm = torch.nn.BatchNorm2d(64).cuda()
x = torch.empty(32, 64, 28, 28, device="cuda").to(memory_format=torch.{layout}).requires_grad_()
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
y = norm(x)
print(torch.cuda.max_memory_allocated() - before - y.numel() * 4)
y.sum().backward()
"""


@pytest.mark.parametrize("layout", ["contiguous_format", "channels_last"])
def test_batch_norm_takes_work_space_only_for_channels_last(virtual, layout):
    ran = virtual(BATCH_NORM.format(layout=layout)).check()

    # THEN mean and variance (512 bytes each), and for channels_last two floats for each channel and SM
    workspace = find_card("rtx-3090").sms * 64 * 8 if layout == "channels_last" else 0
    saved = 2 * 512
    assert saved + workspace <= int(ran.stdout) <= saved + workspace + 512
    assert [entry["bytes"] for entry in ran.of("modelled")] == ([workspace] if workspace else [])


def test_ctc_is_a_guess_that_is_said(virtual):
    ran = virtual("""
import torch
import torch.nn.functional as F
x = torch.zeros(50, 4, 20, device="cuda", requires_grad=True).log_softmax(2)
F.ctc_loss(x, torch.ones(40, dtype=torch.int32), (50,) * 4, (10,) * 4).backward()
""").check()

    (note,) = ran.of("uncounted")
    assert note["what"] == "cuDNN CTC loss work space"
    assert note["bytes"] == 2 * 4 * 50 * 4 * (2 * 10 + 1)


def test_without_cudnn_ctc_is_torchs_own(virtual):
    ran = virtual("""
import torch
import torch.nn.functional as F
x = torch.zeros(50, 4, 20, device="cuda", requires_grad=True).log_softmax(2)
with torch.backends.cudnn.flags(enabled=False):
    F.ctc_loss(x, torch.ones(40, dtype=torch.int32), (50,) * 4, (10,) * 4).backward()
""").check()

    assert ran.of("uncounted") == []


def test_grid_sampling_runs(virtual):
    out = (
        virtual("""
import torch
import torch.nn.functional as F
theta = torch.zeros(2, 2, 3, device="cuda", requires_grad=True)
grid = F.affine_grid(theta, (2, 3, 8, 8), align_corners=True)
y = F.grid_sample(torch.zeros(2, 3, 8, 8, device="cuda"), grid, align_corners=True)
y.sum().backward()
print(tuple(y.shape), tuple(theta.grad.shape))
""")
        .check()
        .stdout.strip()
    )

    assert out == "(2, 3, 8, 8) (2, 2, 3)"
