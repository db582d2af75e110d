"""What PyTorch sees: exactly the card, its allocator's own behaviour, and an end at its true capacity."""

from __future__ import annotations

import pytest

from vramscope.cards import find_card, outside_of

MIB = 2**20


def test_properties_are_the_cards(virtual):
    card = find_card("rtx-3060")
    out = (
        virtual(
            """
import torch
p = torch.cuda.get_device_properties(0)
print(p.name, p.major, p.minor, p.total_memory, p.multi_processor_count, p.L2_cache_size, p.shared_memory_per_block_optin, sep="|")
""",
            gpu="rtx-3060",
        )
        .check()
        .stdout.strip()
    )

    assert out == "|".join(
        map(
            str,
            (
                card.name,
                *card.capability,
                card.memory_bytes,
                card.sms,
                card.l2_bytes,
                card.shared_per_block_optin_bytes,
            ),
        )
    )


def test_the_allocator_is_torchs(virtual):
    # GIVEN the rounding rules of c10/core/AllocatorConfig.h: 512 bytes, segments of 2 and 20 MiB
    out = (
        virtual("""
import torch
a, r = torch.cuda.memory_allocated, torch.cuda.memory_reserved
small = torch.empty(1000, device="cuda"); print(a(), r())
big = torch.empty(10 * 2**20, dtype=torch.uint8, device="cuda"); print(r())
torch.cuda.memory._record_memory_history(); del big; print(r())
print(sorted(b["state"] for s in torch.cuda.memory._snapshot()["segments"] for b in s["blocks"]))
torch.cuda.empty_cache(); print(r())
""")
        .check()
        .stdout.split("\n")
    )

    assert out[:3] == ["4096 2097152", "12582912", "12582912"]
    assert out[3] == "['active_allocated', 'inactive', 'inactive']"
    assert out[4] == "2097152"


def test_out_of_memory_comes_at_the_cards_capacity_with_torchs_own_message(virtual):
    ran = virtual(
        """
import torch
keep = []
try:
    while True: keep.append(torch.empty(2**30, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError as error:
    print(len(keep), torch.cuda.memory_stats()["num_alloc_retries"], "Tried to allocate 1024.00 MiB. GPU 0 has a total capacity of 24.00 GiB" in str(error))
""",
        memory_bytes=24 * 2**30,
    ).check()

    assert ran.stdout.split() == ["23", "1", "True"]
    (oom,) = ran.of("oom")
    assert oom["requested_bytes"] == 2**30
    assert oom["where"].endswith("in <module>")


def test_the_context_is_taken_off_the_card(virtual):
    card = find_card("rtx-3090")
    free, total = map(int, virtual("import torch; print(*torch.cuda.mem_get_info())").check().stdout.split())

    taken = -(-outside_of(card).bytes // (2 * MIB)) * 2 * MIB
    assert total == card.memory_bytes
    assert total - free in (outside_of(card).bytes, taken)


@pytest.mark.parametrize(("gpu", "workspace"), [("a100-80gb", 8320 * 1024), ("h100", 32 * MIB)])
def test_cublas_workspaces_depend_on_the_capability(virtual, gpu, workspace):
    out = (
        virtual(
            """
import torch
a = torch.empty(64, 64, device="cuda", requires_grad=True); b = torch.empty(64, 64, device="cuda")
n = torch.cuda.memory_allocated(); c = a @ b; print(torch.cuda.memory_allocated() - n - 16384)
n = torch.cuda.memory_allocated(); c.sum().backward(); print(torch.cuda.memory_allocated() - n - 16384)
""",
            gpu=gpu,
        )
        .check()
        .stdout.split()
    )

    assert out == [str(workspace)] * 2  # the autograd thread has a handle, so a work space, of its own


def test_a_card_that_the_wheel_was_not_built_for_says_what_torch_says(virtual):
    ran = virtual("import torch; torch.ones(4, device='cuda')", gpu="v100-16gb")

    assert ran.returncode != 0
    assert "no kernel image is available for execution on the device" in ran.stderr


def test_a_launch_that_a_card_refuses_is_refused(virtual):
    # The flash kernel puts the batch on the grid's y axis, which ends at 65,535.
    code = """
import torch
q = torch.empty({windows}, 2, 16, 32, device="cuda", dtype=torch.float16)
torch.nn.functional.scaled_dot_product_attention(q, q, q)
torch.cuda.synchronize()
"""
    virtual(code.format(windows=65_535)).check()
    refused = virtual(code.format(windows=65_536))

    assert refused.returncode != 0
    assert "invalid configuration argument" in refused.stderr


@pytest.mark.parametrize("setting", ["expandable_segments:True", "max_split_size_mb:32", "garbage_collection_threshold:0.6",
                                     "roundup_power2_divisions:4", "backend:cudaMallocAsync", "pinned_use_background_threads:True"])  # fmt: skip
def test_allocator_settings(virtual, setting):
    ran = virtual(
        """
import torch
x = [torch.empty(30 * 2**20, dtype=torch.uint8, device="cuda") for _ in range(4)]
print(torch.cuda.memory_reserved() >= 120 * 2**20)
del x; torch.cuda.empty_cache(); print(torch.cuda.memory_reserved())
""",
        PYTORCH_CUDA_ALLOC_CONF=setting,
    ).check()

    assert ran.stdout.split() == ["True", "0"]
    assert ran.of("torch")[0]["allocator"] == setting


def test_expandable_segments_map_whole_pages(virtual):
    out = (
        virtual(
            """
import torch
x = torch.empty(30 * 2**20, dtype=torch.uint8, device="cuda"); print(torch.cuda.memory_reserved())
""",
            PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
        )
        .check()
        .stdout
    )

    assert int(out) == 40 * MIB  # two pages of 20 MiB


def test_several_cards_and_copies_between_them(virtual):
    ran = virtual(
        """
import torch
x = torch.ones(1024, device="cuda:0"); y = x.to("cuda:1"); z = torch.empty(8 * 2**20, device="cuda:1")
print(torch.cuda.device_count(), y.device, torch.cuda.memory_allocated(0), torch.cuda.memory_allocated(1) > 32 * 2**20, torch.cuda.can_device_access_peer(0, 1))
""",
        devices=2,
    ).check()

    assert ran.stdout.split() == ["2", "cuda:1", "4096", "True", "True"]
    assert all(peak > 0 for peak in ran.peak_used_bytes)


def test_cuda_visible_devices(virtual):
    out = (
        virtual("import torch; print(torch.cuda.device_count())", devices=4, CUDA_VISIBLE_DEVICES="0,2")
        .check()
        .stdout
    )
    assert out.strip() == "2"
    out = virtual("import torch; print(torch.cuda.is_available())", CUDA_VISIBLE_DEVICES="").check().stdout
    assert out.strip() == "False"


def test_streams_events_and_pinned_memory(virtual):
    out = (
        virtual("""
import torch
side = torch.cuda.Stream(); start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
host = torch.empty(1024).pin_memory(); print(host.is_pinned())
with torch.cuda.stream(side):
    start.record(); y = host.to("cuda", non_blocking=True) * 2; end.record()
torch.cuda.current_stream().wait_stream(side); torch.cuda.synchronize(); print(start.elapsed_time(end) > 0, end.query())
""")
        .check()
        .stdout.split()
    )

    assert out == ["True", "True", "True"]


def test_graphs_keep_their_pool(virtual):
    out = virtual("""
import torch
x = torch.empty(2**20, device="cuda"); torch.mm(x.view(1024, 1024), x.view(1024, 1024)); torch.cuda.synchronize()
before = torch.cuda.memory_reserved()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph): y = (x * 2 + 1).view(1024, 1024); z = y @ y
kept = torch.cuda.memory_reserved() - before
for _ in range(3): graph.replay()
torch.cuda.empty_cache(); print(kept > 0, torch.cuda.memory_reserved() - before >= z.numel() * 4)
""").check()

    assert out.stdout.split() == ["True", "True"]
    assert "CUDA graph" in {entry["what"] for entry in out.of("uncounted")}


def test_device_memory_costs_no_host_memory(virtual):
    out = (
        virtual(
            """
import resource, torch
torch.cuda.init(); before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
x = [torch.zeros(10 * 2**28, device="cuda") for _ in range(6)]
print(torch.cuda.memory_allocated() >= 60 * 2**30, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000)
""",
            gpu="a100-80gb",
        )
        .check()
        .stdout.split()
    )

    assert out == ["True", "True"]
