"""The allocator's history as the recorder takes it over: whole, in order, and out of the program's way."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from vramscope.run.categories import CATEGORIES, INDEX
from vramscope.run.curves import allocated_curve, live_at, peak_moment
from vramscope.run.sums import faults_of
from vramscope.run.trace import AUTOCAST, BACKWARD, RECOMPUTE

TRAIN = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256)
    def forward(self, x):
        return self.second(self.first(x).relu())
model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters())
def step(x):
    loss = model(x).square().mean()
    loss.backward(); optimizer.step(); optimizer.zero_grad()
"""
LOOP = TRAIN + "\nfor _ in range(3): step(torch.randn(512, 256).cuda())\n"


@pytest.fixture(scope="module")
def trained(request):
    from virtual_runs import run_virtual

    return run_virtual(LOOP + "print(torch.cuda.memory_allocated())").check()


def names(trace, category):
    rows = np.flatnonzero(trace.blocks.category == INDEX[category])
    return {trace.tables.names[number] for number in trace.blocks.name[rows]}


def test_every_event_is_there_and_the_sums_close(trained):
    trace = trained.traces[0]

    assert faults_of(trace) == []
    assert trace.whole
    assert trace.notes == ()
    assert allocated_curve(trace)[-1] == trace.spans[-1].allocated_bytes == int(trained.stdout)


def test_what_outlives_a_step_has_its_name(trained):
    trace = trained.traces[0]
    weights = {f"Net.{layer}.{kind}" for layer in ("first", "second") for kind in ("weight", "bias")}

    assert names(trace, "parameter") == names(trace, "gradient") == weights
    assert names(trace, "optimizer_state") == {
        f"{w} {state}" for w in weights for state in ("exp_avg", "exp_avg_sq")
    }


def test_modules_tell_what_they_hold(trained):
    modules = {module.path: module for module in trained.traces[0].tables.modules}

    assert list(modules) == ["", "Net", "Net.first", "Net.second"]
    assert modules["Net.first"].kind == "Linear"
    assert modules["Net.first"].parameters == modules["Net.first"].trainable == 257 * 1024
    assert modules["Net.first"].parameter_bytes == 4 * 257 * 1024
    (optimizer,) = trained.traces[0].tables.optimizers
    assert (optimizer.kind, optimizer.parameters, optimizer.foreach) == (
        "AdamW",
        257 * 1024 + 1025 * 256,
        None,
    )


def test_a_tied_weight_is_counted_once_under_its_first_name(virtual):
    ran = virtual(
        """
import torch
class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(1000, 64), torch.nn.Linear(64, 1000, bias=False)
        self.head.weight = self.embed.weight
    def forward(self, x):
        return self.head(self.embed(x))
net = Tied().cuda()
optimizer = torch.optim.Adam(net.parameters())
for _ in range(2):
    net(torch.randint(1000, (8,)).cuda()).sum().backward(); optimizer.step(); optimizer.zero_grad()
"""
    ).check()
    trace = ran.traces[0]

    assert (
        sum(module.parameters for module in trace.tables.modules)
        == 64_000
        == trace.tables.optimizers[0].parameters
    )
    assert names(trace, "parameter") == names(trace, "gradient") == {"Tied.embed.weight"}
    assert names(trace, "optimizer_state") == {"Tied.embed.weight exp_avg", "Tied.embed.weight exp_avg_sq"}


def test_activations_and_gradients_know_their_module_and_line(trained):
    trace = trained.traces[0]
    blocks, tables = trace.blocks, trace.tables
    kept = blocks.category == INDEX["activation"]
    paths = {tables.modules[number].path for number in blocks.module[kept & (blocks.size_bytes > 512)]}
    backward = np.flatnonzero(blocks.flags & BACKWARD)

    assert paths == {"Net", "Net.second"}  # the first layer's output is dropped, its relu is kept
    assert len(backward)
    assert {tables.modules[n].path for n in blocks.module[backward]} == {"", "Net", "Net.first", "Net.second"}
    functions = {
        tuple(tables.frames[n].function for n in tables.stacks[stack]) for stack in blocks.stack[backward]
    }
    assert all(names[-2:] == ("step", "<module>") for names in functions)


def test_inputs_are_what_came_from_the_host(trained):
    trace = trained.traces[0]
    rows = np.flatnonzero(trace.blocks.category == INDEX["input"])

    assert trace.blocks.requested_bytes[rows].tolist() == [512 * 256 * 4] * 3


def test_work_spaces_are_what_the_library_was_given(virtual):
    ran = virtual(
        """
import torch
net = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.Conv2d(64, 64, 3, padding=1)).cuda()
for _ in range(2): net(torch.randn(16, 3, 64, 64, device="cuda")).sum().backward()
"""
    ).check()
    trace = ran.traces[0]
    spaces = trace.blocks.category == INDEX["workspace"]

    assert spaces.sum() > 4
    assert {trace.tables.modules[n].path for n in trace.blocks.module[spaces]} >= {
        "Sequential.0",
        "Sequential.1",
    }
    assert np.all(trace.blocks.freed[spaces] < trace.moments)


def test_a_checkpoints_recomputation_is_told_apart(virtual):
    ran = virtual(
        """
import torch
from torch.utils.checkpoint import checkpoint
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = torch.nn.Sequential(torch.nn.Linear(256, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 256))
    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)
net = Net().cuda()
for _ in range(2): net(torch.randn(512, 256, device="cuda", requires_grad=True)).sum().backward()
"""
    ).check()
    trace = ran.traces[0]
    blocks = trace.blocks
    again = np.flatnonzero(blocks.flags & RECOMPUTE)
    kept = again[blocks.category[again] == INDEX["activation"]]

    assert faults_of(trace) == []
    assert {trace.tables.modules[n].path for n in blocks.module[kept]} == {"Net.block.0", "Net.block.1"}


def test_copies_of_weights_under_autocast(virtual):
    ran = virtual(
        LOOP.replace("    loss = model", "    with torch.autocast('cuda', torch.bfloat16): loss = model")
    ).check()
    trace = ran.traces[0]
    blocks = trace.blocks
    casts = np.flatnonzero(blocks.category == INDEX["autocast_cache"])

    assert sorted(set(blocks.requested_bytes[casts])) == [2 * 256, 2 * 1024, 2 * 256 * 1024]
    assert len(casts) == 3 * 4
    assert np.all(blocks.flags[casts] & AUTOCAST)


def test_a_loop_that_begins_with_zero_grad_has_all_names(virtual):
    ran = virtual(
        TRAIN
        + """
for _ in range(2):
    optimizer.zero_grad()
    torch.nn.MSELoss()(model(torch.randn(512, 256).cuda()), torch.zeros(512, 256).cuda()).backward()
    optimizer.step()
"""
    ).check()
    trace = ran.traces[0]
    weights = {f"Net.{layer}.{kind}" for layer in ("first", "second") for kind in ("weight", "bias")}

    assert names(trace, "parameter") == names(trace, "gradient") == weights
    assert {module.path for module in trace.tables.modules} == {
        "",
        "Net",
        "Net.first",
        "Net.second",
        "MSELoss",
    }


def test_a_block_that_follows_a_work_space_at_its_address_is_none(virtual):
    """In eval mode convolutions' outputs come to lie where a work space was microseconds before."""
    ran = virtual(
        """
import torch
layers = [torch.nn.Sequential(torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.BatchNorm2d(64)) for _ in range(20)]
net = torch.nn.Sequential(*layers).cuda().eval()
for _ in range(2): out = net(torch.randn(16, 64, 56, 56).cuda())
"""
    ).check()
    trace = ran.traces[0]
    spaces = trace.blocks.category == INDEX["workspace"]
    kept = spaces & (trace.blocks.requested_bytes == 16 * 64 * 56 * 56 * 4)

    assert spaces.any()
    assert not kept.any()


def test_only_a_freeze_that_freezes_nothing_is_noted(virtual):
    ran = virtual(
        TRAIN
        + "\nmodel.first.requires_grad = False\nmodel.second.requires_grad = True\nstep(torch.randn(8, 256).cuda())"
    ).check()
    notes = {module.path: module.notes for module in ran.traces[0].tables.modules}

    assert notes["Net.first"] == ("requires_grad attribute",)
    assert notes["Net.second"] == ()


def test_phases_of_evaluation_and_zero_grad(virtual):
    ran = virtual(LOOP + "\nwith torch.no_grad(): model(torch.randn(64, 256).cuda())").check()
    phases = [span.phase for span in ran.traces[0].spans]

    assert phases.count("zero_grad") == 3
    assert phases[-1] == "evaluation"


def test_a_program_that_only_infers_has_forwards(virtual):
    ran = virtual(TRAIN + "\nwith torch.no_grad(): model(torch.randn(64, 256).cuda())").check()

    assert "evaluation" not in {span.phase for span in ran.traces[0].spans}


def test_marks_end_their_stage(virtual):
    ran = virtual(
        "import vramscope\n"
        + TRAIN
        + "\nvramscope.mark('built')\nstep(torch.randn(8, 256).cuda())\nvramscope.mark('stepped')"
    )
    trace = ran.check().traces[0]
    marked = [(span.mark, span.phase) for span in trace.spans if span.mark]

    assert marked == [("built", "init"), ("stepped", "other")]
    assert faults_of(trace) == []


def test_a_mark_within_a_module_stays_in_it(virtual):
    ran = virtual(
        """
import torch, vramscope
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(256, 256)
    def forward(self, x):
        x = self.layer(x)
        vramscope.mark("half")
        return x.exp()
Net().cuda()(torch.randn(512, 256).cuda()).sum().backward()
"""
    ).check()
    trace = ran.traces[0]
    (half,) = [b.first for a, b in pairwise(trace.spans) if a.mark == "half"]
    first = int(np.searchsorted(trace.blocks.born, half))

    assert trace.tables.modules[trace.blocks.module[first]].path == "Net"


def test_the_programs_own_history_is_its_own(virtual):
    ran = virtual(
        TRAIN
        + """
step(torch.randn(8, 256).cuda())
torch.cuda.memory._record_memory_history(max_entries=100000)
step(torch.randn(8, 256).cuda())
step(torch.randn(8, 256).cuda())
mine = torch.cuda.memory._snapshot()["device_traces"][0]
torch.cuda.memory._record_memory_history(enabled=None)
step(torch.randn(8, 256).cuda())
allocs = [entry for entry in mine if entry["action"] == "alloc"]
print(len(allocs) > 20, all(entry["frames"] for entry in allocs if "8:" not in entry["user_metadata"]))
"""
    ).check()
    trace = ran.traces[0]

    assert ran.stdout.split()[0] == "True"
    assert faults_of(trace) == []
    assert [span.phase for span in trace.spans].count("optimizer_step") == 4


def test_a_killed_process_loses_no_more_than_its_step(virtual):
    ran = virtual(LOOP + "\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    trace = ran.traces[0]

    assert ran.returncode == -9
    assert [span.phase for span in trace.spans].count("optimizer_step") == 3
    assert faults_of(trace) == []
    assert any("killed" in note for note in trace.notes)


def test_a_killed_process_has_told_the_allocators_settings(virtual):
    """Its history is replayed by them."""
    settings = "roundup_power2_divisions:4"
    ran = virtual(
        LOOP + "\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)", PYTORCH_CUDA_ALLOC_CONF=settings
    )

    assert ran.traces[0].settings["PYTORCH_CUDA_ALLOC_CONF"] == settings
    assert faults_of(ran.traces[0]) == []


def test_copies_on_several_cards_share_their_modules_names(virtual):
    ran = virtual(
        TRAIN
        + "\nmodel = torch.nn.DataParallel(model)\nfor _ in range(3): step(torch.randn(64, 256).cuda())",
        devices=2,
    ).check()

    assert [trace.device for trace in ran.traces] == [0, 1]
    for trace in ran.traces:
        assert faults_of(trace) == []
    paths = {module.path for module in ran.traces[0].tables.modules}
    assert paths == {"", "Net", "Net.first", "Net.second", "DataParallel"} or "DataParallel" in paths
    assert len(paths) <= 8  # replicas are new modules at every call


def test_cycles_are_collected_when_the_program_alone_would_have(virtual):
    """What a cycle holds is freed by Python's collection; the recorder's own objects must not bring it on."""
    code = """
import gc, torch
held = []
class Cycle:
    def __init__(self):
        self.me, self.data = self, torch.empty(1 << 18, device="cuda")
net = torch.nn.Linear(8, 8).cuda()
gc.collect()  # what was imported before counts no more
for i in range(40):
    Cycle()
    net(torch.empty(4, 8, device="cuda")).sum().backward()
    held.append(torch.cuda.memory_allocated())
print(gc.get_count()[2], held)
"""
    ran = virtual(code).check()
    growth = eval(ran.stdout.partition(" ")[2])

    assert growth == sorted(growth)  # 40 cycles are far fewer than a collection's threshold of 700 objects


def test_after_too_many_events_the_history_ends_and_says_so(virtual):
    ran = virtual(
        "import vramscope.recording.history as h; h.MOST_EVENTS = 200\n"
        + LOOP
        + "\nprint(torch.cuda.max_memory_allocated())"
    ).check()
    trace = ran.traces[0]

    assert any("ends after" in note for note in trace.notes)
    assert len(ran.of("step")) == 3
    assert trace.moments < 1000


def test_kv_caches_are_told_apart(virtual):
    pytest.importorskip("transformers")
    ran = virtual(
        """
import torch
from transformers import GPT2Config, GPT2LMHeadModel
model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=100)).cuda().eval()
model.generate(torch.randint(0, 100, (2, 16)).cuda(), max_new_tokens=4, do_sample=False)
""",
        HF_HUB_OFFLINE="1",
    ).check()
    trace = ran.traces[0]
    live = live_at(trace, peak_moment(trace))

    assert CATEGORIES[np.bincount(trace.blocks.category[live]).argmax()] in ("parameter", "kv_cache")
    assert (trace.blocks.category == INDEX["kv_cache"]).sum() >= 2 * 2 * 4


def test_graphs_pools_and_streams(virtual):
    ran = virtual(
        """
import torch
layer, x, side = torch.nn.Linear(1024, 1024).cuda(), torch.randn(64, 1024, device="cuda"), torch.cuda.Stream()
with torch.cuda.stream(side):
    for _ in range(3): layer(x).sum().backward()
torch.cuda.current_stream().wait_stream(side)
layer.zero_grad()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    layer(x).sum().backward()
for _ in range(3): graph.replay()
a = torch.empty(1 << 20, device="cuda"); a.record_stream(side); del a
b = torch.empty(1 << 20, device="cuda")
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    c = torch.empty(1 << 22, device="cuda")
torch.cuda.max_memory_allocated()
"""
    ).check()
    trace = ran.traces[0]

    assert faults_of(trace) == []
    assert len(trace.pools) == 3
    assert len(trace.streams) >= 2


@pytest.mark.parametrize(
    "settings", ["expandable_segments:True", "max_split_size_mb:64", "roundup_power2_divisions:4"]
)
def test_the_allocators_settings_are_followed(virtual, settings):
    ran = virtual(LOOP, PYTORCH_CUDA_ALLOC_CONF=settings).check()
    trace = ran.traces[0]

    assert faults_of(trace) == []
    assert trace.settings["PYTORCH_CUDA_ALLOC_CONF"] == settings


def test_what_waits_to_be_taken_is_bounded(virtual):
    ran = virtual(
        """
import torch
layer, x = torch.nn.Linear(16, 16).cuda(), torch.zeros(2, 16, device="cuda", requires_grad=True)
def resident(): return int(open("/proc/self/statm").read().split()[1]) * 4096
def run(times):
    for _ in range(times): layer(x).sum().backward()
run(2000); before = resident(); run(4000); print(resident() - before)
"""
    ).check()

    assert int(ran.stdout) < 4000 * 2000  # bytes a backward; what waits has some 50,000 of each
    assert faults_of(ran.traces[0]) == []
