"""cuDNN's graph API: the installed library's own plans for the card, without paying for their kernels."""

from __future__ import annotations

import pytest

# Published readings of real cards (FakeGPU, fakegpu/data/workspace_profiles.json: work space of one
# 3x3 convolution, padding 1), and the figure of cuDNN 9.24 where another release chooses otherwise.
WORKSPACES = """
import torch
print(torch.backends.cudnn.version())
for dtype, n, c, k, size in ((torch.bfloat16, 2, 64, 64, 128), (torch.float32, 4, 128, 128, 64),
                             (torch.float32, 2, 64, 64, 128)):
    conv = torch.nn.Conv2d(c, k, 3, padding=1, bias=False, device="cuda", dtype=dtype)
    x = torch.empty(n, c, size, size, device="cuda", dtype=dtype)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    y = conv(x)
    print(torch.cuda.max_memory_allocated() - before - y.numel() * y.element_size())
"""

# Every dtype and layout, grouped and transposed, forward and both backwards; attention both ways.
EVERYTHING = """
import torch
import torch.nn.functional as F
def peak(run):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run().float().sum().backward()
    return torch.cuda.max_memory_allocated() - before
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for layout in (torch.contiguous_format, torch.channels_last):
        modules = (torch.nn.Conv2d(64, 128, 3, padding=1), torch.nn.Conv2d(64, 64, 3, groups=4),
                   torch.nn.ConvTranspose2d(64, 32, 3, stride=2))
        for module in modules:
            module.to("cuda", dtype, memory_format=layout)
            x = torch.empty(8, 64, 28, 28, device="cuda", dtype=dtype)
            x = x.to(memory_format=layout).requires_grad_()
            print(peak(lambda: module(x)))
if torch.cuda.get_device_capability() >= (8, 0):
    for kv_heads, length in ((16, 512), (4, 513)):
        q = torch.empty(2, 16, length, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        k = torch.empty(2, kv_heads, length, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
            gqa = kv_heads != 16
            print(peak(lambda: F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=gqa)))
"""


def test_work_spaces_equal_readings_of_real_cards(virtual):
    version, *found = virtual(WORKSPACES, gpu="rtx-3090").check().stdout.split()

    if version != "92400":
        pytest.skip(f"the figures are cuDNN 9.24's, installed is {version}")
    assert found == ["8462848", "8978944", str(-(-410112 // 512) * 512)]


@pytest.mark.parametrize("gpu", ["rtx-3090", "h100", "b200"])
def test_plans_that_are_not_built_state_the_same_work_space(virtual, gpu):
    # GIVEN work spaces read from engine configurations, and from plans that cuDNN really compiled
    quick = virtual(EVERYTHING, gpu=gpu).check()
    built = virtual(EVERYTHING, gpu=gpu, VRAMSCOPE_CUDNN_BUILD_PLANS="1").check()

    assert quick.stdout == built.stdout
    assert len(quick.stdout.split()) == 20
    # AND cuDNN found all that it wants of the driver: without it it silently has fewer engines
    assert "Could not load symbol" not in quick.stderr + built.stderr


def test_growing_lengths_are_planned_in_milliseconds_and_forgotten(virtual):
    # GIVEN attention that takes cuDNN on this card, forward and backward, with a new shape at each step
    seconds, grown = map(
        float,
        virtual(
            """
import time, torch
import torch.nn.functional as F
def resident(): return int(open("/proc/self/statm").read().split()[1]) * 4096
def step(length):
    q, k = (torch.empty(1, 8, n, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for n in (16, length))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
        F.scaled_dot_product_attention(q, k, k).sum().backward()
step(2)
began, before = time.perf_counter(), resident()
for length in range(3, 403): step(length)
print(time.perf_counter() - began, resident() - before)
""",
            gpu="h100",
        )
        .check()
        .stdout.split(),
    )

    # THEN 2,000 of them stay under a minute (a compiled plan takes 0.2 to 1.2 s each) and a gigabyte
    # (what the library holds for each shape, and torch keeps, would be 2.4 MB)
    assert seconds < 12
    assert grown / 400 < 600_000


SEARCH = """
import torch
torch.backends.cudnn.benchmark = {benchmark}
conv = torch.nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False, device="cuda")
x = torch.empty(32, 3, 224, 224, device="cuda")
y = conv(x)
search = torch.cuda.max_memory_allocated()
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
z = conv(x)
print(search, torch.cuda.max_memory_allocated() - before - z.numel() * 4)
"""


def test_benchmark_tries_large_work_spaces_and_keeps_none_of_them(virtual):
    ran = virtual(SEARCH.format(benchmark=True)).check()
    search, kept = map(int, ran.stdout.split())

    # THEN the search took the largest work space of all plans, as torch does (Conv_v8.cpp,
    # generate_and_filter_plans)
    assert search > 200 * 2**20
    # AND the plan that won needs next to none: copying to another layout costs more than it saves here
    assert kept < 2**20
    (note,) = (entry for entry in ran.of("modelled") if entry["what"] == "cudnn.benchmark")
    assert "roofline" in str(note["note"])


def test_without_benchmark_nothing_is_said_to_be_modelled(virtual):
    ran = virtual(SEARCH.format(benchmark=False)).check()

    assert ran.of("modelled") == []


REGNET = """
import timm, torch
torch.backends.cudnn.benchmark = True
model = timm.create_model("regnetx_080").cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, nesterov=True)
for _ in range(2):
    x = torch.randn({batch}, 3, 224, 224, device="cuda")
    target = torch.zeros({batch}, dtype=torch.long, device="cuda")
    optimizer.zero_grad(set_to_none=False)
    with torch.autocast("cuda", dtype=torch.float16):
        torch.nn.functional.cross_entropy(model(x), target).backward()
    optimizer.step()
"""


def test_benchmark_does_not_make_a_batch_that_fits_run_out_of_memory(virtual):
    # GIVEN a published pair for this card: 384 images fit, 512 do not (pytorch-image-models,
    # results/benchmark-train-amp-nchw-pt112-cu113-rtx3090.csv)
    pytest.importorskip("timm")

    virtual(REGNET.format(batch=384), gpu="rtx-3090").check()

    larger = virtual(REGNET.format(batch=512), gpu="rtx-3090")
    assert "OutOfMemoryError" in larger.stderr


ONE_CONVOLUTION = """
import torch
print(tuple(torch.nn.Conv2d(8, 8, 3).cuda()(torch.zeros(1, 8, 20, 20, device="cuda")).shape))
"""


def test_the_other_heuristic_plans_too(virtual):
    out = virtual(ONE_CONVOLUTION, TORCH_CUDNN_USE_HEURISTIC_MODE_B="1").check().stdout

    assert out.strip() == "(1, 8, 18, 18)"


def test_fused_convolutions_plan(virtual):
    out = (
        virtual("""
import torch
x, w, b = (torch.zeros(*s, device="cuda") for s in ((2, 8, 16, 16), (8, 8, 3, 3), (8,)))
print(tuple(torch.cudnn_convolution_relu(x, w, b, (1, 1), (1, 1), (1, 1), 1).shape))
print(tuple(torch.cudnn_convolution_add_relu(x, w, x, 1.0, b, (1, 1), (1, 1), (1, 1), 1).shape))
""")
        .check()
        .stdout.split("\n")
    )

    assert out[:2] == ["(2, 8, 16, 16)"] * 2


def test_nothing_grows_with_the_number_of_calls(virtual):
    grown = int(
        virtual(
            """
import torch
conv = torch.nn.Conv2d(16, 16, 3).cuda()
x = torch.zeros(2, 16, 32, 32, device="cuda", requires_grad=True)
def resident(): return int(open("/proc/self/statm").read().split()[1]) * 4096
def run(times):
    for _ in range(times): conv(x).sum().backward()
run(500); before = resident(); run(4000); print(resident() - before)
""",
            VRAMSCOPE_HISTORY="off",
        )
        .check()
        .stdout
    )

    # THEN less than 200 bytes a call, where one descriptor alone has more
    assert grown < 4000 * 200


def test_threads_plan_and_execute_side_by_side(virtual):
    out = (
        virtual("""
import threading, torch
def work(k, results):
    conv = torch.nn.Conv2d(8, 8, 3).cuda()
    for size in range(10, 60):
        conv(torch.zeros(1, 8, size, size, device="cuda")).sum().backward()
    results.append(k)
results = []
threads = [threading.Thread(target=work, args=(k, results)) for k in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(results))
""")
        .check()
        .stdout.strip()
    )

    assert out == "[0, 1, 2, 3]"


def test_a_library_that_cannot_be_had_is_named(virtual):
    # GIVEN a cuDNN that is not there
    elsewhere = 'import os; os.environ["VRAMSCOPE_CUDNN"] = "/nowhere/libcudnn.so.9"'
    ran = virtual(elsewhere + ONE_CONVOLUTION, gpu="rtx-3090")

    # THEN torch raises, and the reason is said and journalled
    assert ran.returncode == 1
    assert "vramscope: cuDNN cannot plan for NVIDIA GeForce RTX 3090: /nowhere/libcudnn.so.9" in ran.stderr
    assert any("/nowhere/libcudnn.so.9" in str(entry["symbol"]) for entry in ran.of("unsimulated"))


def test_the_older_convolution_calls_fail_by_name(virtual):
    ran = virtual(ONE_CONVOLUTION, TORCH_CUDNN_V8_API_DISABLED="1")

    assert "CUDNN_STATUS_NOT_SUPPORTED" in ran.stderr
    assert "cudnnGetConvolutionForwardAlgorithm_v7" in [entry["symbol"] for entry in ran.of("unsimulated")]
