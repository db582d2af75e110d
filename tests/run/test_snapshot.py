"""Snapshots of torch as runs: hand-made ones event by event, real programs, and the public ones."""

from __future__ import annotations

import csv
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from histories import BASE, MIB, block, event, frame, freed, segment, snapshot, unrecorded
from vramscope.errors import RunError
from vramscope.run.categories import CATEGORIES
from vramscope.run.curves import allocated_curve, reserved_curve
from vramscope.run.run import Run
from vramscope.run.snapshot import import_snapshot, run_of
from vramscope.run.trace import Trace

PACKAGES = "/home/ann/env/lib/python3.12/site-packages"
MAIN = frame("/home/ann/work/net/train.py", 5, "<module>")
CALL = frame(f"{PACKAGES}/torch/nn/modules/module.py", 1790, "_call_impl")
FORWARD = [frame("/home/ann/work/net/models/net.py", 9, "forward"), CALL, MAIN]
BACKWARD = [frame(f"{PACKAGES}/torch/autograd/graph.py", 824, "_engine_run_backward"), MAIN]
STEP = [
    frame(f"{PACKAGES}/torch/optim/adamw.py", 120, "_init_group"),
    frame(f"{PACKAGES}/torch/optim/adamw.py", 180, "step"),
    MAIN,
]
MOVE = [
    frame(f"{PACKAGES}/torch/nn/modules/module.py", 900, "convert"),
    frame(f"{PACKAGES}/torch/nn/modules/module.py", 950, "_apply"),
    MAIN,
]


def imported(data: object) -> Run:
    run = run_of(data, 10_000_000, "a.pickle")
    assert run.check() == ()
    return run


def trace_of(data: object) -> Trace:
    trace = imported(data).trace
    assert trace is not None
    return trace


def categories(trace: Trace) -> list[str]:
    return [CATEGORIES[number] for number in trace.blocks.category]


def training() -> list[dict[str, Any]]:
    """A parameter, then a step: an activation with a temporary, a gradient, Adam's state with a temporary."""
    at = [BASE + index * MIB for index in range(8)]
    return [
        event("segment_alloc", BASE, 20 * MIB, 1, frames=MOVE),
        event("alloc", at[0], 2 * MIB, 2, frames=MOVE),
        event("alloc", at[2], 2 * MIB, 3, frames=FORWARD),
        event("alloc", at[4], 2 * MIB, 4, frames=FORWARD),
        *freed(at[4], 2 * MIB, 5, frames=FORWARD),
        event("alloc", at[4], 2 * MIB, 6, frames=[]),
        *freed(at[2], 2 * MIB, 7, frames=FORWARD),
        event("alloc", at[2], 2 * MIB, 8, frames=STEP),
        event("alloc", at[6], 2 * MIB, 9, frames=STEP),
        *freed(at[6], 2 * MIB, 10, frames=STEP),
        *freed(at[4], 2 * MIB, 11, frames=[]),
    ]


def test_a_training_step():
    trace = trace_of(snapshot(*training()))

    assert categories(trace) == [
        "parameter",
        "activation",
        "temporary",
        "gradient",
        "optimizer_state",
        "temporary",
    ]
    phases = [(span.first, span.phase, span.step) for span in trace.spans]
    assert phases == [(0, "init", 1), (2, "forward", 1), (6, "backward", 1), (9, "optimizer_step", 1)]
    assert [span.time_us for span in trace.spans] == [1, 3, 6, 8]
    assert trace.whole
    assert allocated_curve(trace)[-1] == 4 * MIB


def test_an_inference_keeps_no_activations():
    """What a forward leaves without a backward ever following is not kept for one."""
    trace = trace_of(
        snapshot(event("segment_alloc", BASE, 20 * MIB), event("alloc", BASE, 2 * MIB, frames=FORWARD))
    )

    assert categories(trace) == ["unknown"]
    assert [span.step for span in trace.spans] == [None, None]


def test_an_optimizer_s_own_annotations_are_its_phases():
    """Also an optimizer whose file is not torch's, and one that asks for nothing."""
    own = [frame("/home/ann/work/net/lion.py", 30, "update"), MAIN]
    annotations = [
        {"device": 0, "name": "Optimizer.step#Lion.step", "stage": "START", "time_us": 9},
        {"device": 0, "name": "Optimizer.step#Lion.step", "stage": "END", "time_us": 12},
    ]
    trace = trace_of(
        snapshot(
            event("segment_alloc", BASE, 20 * MIB, 1, frames=FORWARD),
            event("alloc", BASE, 2 * MIB, 2, frames=FORWARD),
            event("alloc", BASE + 2 * MIB, 2 * MIB, 10, frames=own),
            event("alloc", BASE + 4 * MIB, 2 * MIB, 14, frames=FORWARD),
            external_annotations=annotations,
        )
    )

    phases = [(span.first, span.phase, span.step) for span in trace.spans]
    assert phases == [(0, "forward", 1), (2, "optimizer_step", 1), (3, "forward", 2)]
    assert categories(trace)[1] == "optimizer_state"


def test_a_closure_s_forward_within_a_step_is_a_forward():
    closure = [*FORWARD[:2], frame(f"{PACKAGES}/torch/optim/lbfgs.py", 300, "step"), MAIN]
    trace = trace_of(
        snapshot(
            event("segment_alloc", BASE, 20 * MIB, frames=STEP), event("alloc", BASE, 2 * MIB, frames=closure)
        )
    )

    assert [span.phase for span in trace.spans] == ["optimizer_step", "forward"]


@pytest.mark.parametrize(
    ("frames", "category"),
    [
        ([frame("??", 0, "at::cuda::getNewWorkspace()"), *FORWARD], "workspace"),
        ([frame("ProcessGroupNCCL.cpp", 9, "c10d::ProcessGroupNCCL::allgather"), *FORWARD], "communication"),
        ([frame(f"{PACKAGES}/transformers/cache_utils.py", 80, "update"), *FORWARD], "kv_cache"),
        ([frame(f"{PACKAGES}/torch/nn/modules/linear.py", 100, "__init__"), MAIN], "parameter"),
        ([frame(f"{PACKAGES}/torch/serialization.py", 100, "load"), MAIN], "parameter"),
        ([MAIN], "unknown"),
    ],
)
def test_what_stacks_tell(frames: list[dict[str, Any]], category: str):
    trace = trace_of(
        snapshot(event("segment_alloc", BASE, 20 * MIB), event("alloc", BASE, 2 * MIB, frames=frames))
    )

    assert categories(trace) == [category]


def test_a_cast_is_of_autocast_s_cache_if_it_is_half_of_something_that_stays():
    cast = [frame("??", 0, "at::autocast::cached_cast(c10::ScalarType)"), *FORWARD]
    trace = trace_of(
        snapshot(
            event("segment_alloc", BASE, 20 * MIB, frames=MOVE),
            event("alloc", BASE, 6 * MIB, frames=MOVE),
            event("alloc", BASE + 6 * MIB, 3 * MIB, frames=cast),
            event("alloc", BASE + 9 * MIB, 2 * MIB, frames=cast),
        )
    )

    assert categories(trace) == ["parameter", "autocast_cache", "unknown"]


def test_the_program_s_own_words():
    """Metadata of an export come back; any other text is the block's name."""
    exported = "category: activation; module: Net.conv1; name: Net.conv1 output; phase: forward; step: 3"
    at = BASE + 2 * MIB
    trace = trace_of(
        snapshot(
            event("segment_alloc", BASE, 20 * MIB),
            event("alloc", BASE, 2 * MIB, user_metadata=exported),
            event("alloc", at, 2 * MIB, user_metadata="my buffer"),
            event("alloc", at + 2 * MIB, 2 * MIB),
            event("annotate", at + 2 * MIB, 0, user_metadata="category: input; phase: other; step: x"),
        )
    )

    tables, blocks = trace.tables, trace.blocks
    assert categories(trace) == ["activation", "unknown", "input"]
    assert [tables.modules[number].path for number in blocks.module] == ["Net.conv1", "", ""]
    assert [tables.names[number] for number in blocks.name] == ["Net.conv1 output", "my buffer", ""]
    assert [(span.first, span.phase, span.step) for span in trace.spans] == [
        (0, "forward", 3),
        (3, "other", None),
    ]
    assert not any("Modules are not known" in note for note in trace.notes)


# -- what is left out, and what is known of the beginning --------------------------------------------
def test_a_history_that_begins_late():
    """The first block was there and stays, the second was there and goes, the third comes."""
    trace = trace_of(
        snapshot(
            *freed(BASE + 4 * MIB, 3 * MIB),
            event("alloc", BASE + 4 * MIB, 2 * MIB),
            segments=[segment(BASE, 20 * MIB, block(BASE, 4 * MIB), block(BASE + 4 * MIB, 2 * MIB))],
        )
    )

    assert not trace.whole
    assert trace.blocks.born.tolist() == [-1, -1, 2]
    assert trace.blocks.freed.tolist() == [3, 0, 3]
    assert allocated_curve(trace).tolist() == [4 * MIB, 4 * MIB, 6 * MIB]
    assert reserved_curve(trace).tolist() == [20 * MIB] * 3
    assert (
        trace.notes[0] == "The history begins with 7.00 MiB allocated already; earlier peaks are not known."
    )
    assert trace.notes[1].startswith("Of 1 blocks that were there before")


def test_a_segment_that_was_given_back_was_there_before():
    trace = trace_of(snapshot(*freed(BASE, 5 * MIB), event("segment_free", BASE, 20 * MIB)))

    assert reserved_curve(trace).tolist() == [20 * MIB, 20 * MIB, 0]
    assert trace.blocks.size_bytes.tolist() == [5 * MIB]


def test_mapped_ranges_of_before():
    """At the end 20 MiB are mapped; before, the 20 MiB were two ranges, one of which is gone."""
    mapped = segment(BASE, 20 * MIB, block(BASE, 4 * MIB), is_expandable=True)
    trace = trace_of(
        snapshot(
            event("segment_unmap", BASE + 20 * MIB, 20 * MIB),
            event("segment_map", BASE + 60 * MIB, 20 * MIB),
            event("segment_unmap", BASE + 60 * MIB, 20 * MIB),
            segments=[mapped],
        )
    )

    assert reserved_curve(trace).tolist() == [20 * MIB, 40 * MIB, 20 * MIB]
    assert trace.segments.expandable.all()


def test_without_events_the_state_at_the_end_is_the_history():
    state = [
        segment(BASE, 20 * MIB, block(BASE + 2 * MIB, 4 * MIB, frames=STEP), block(BASE + 8 * MIB, 2 * MIB)),
        segment(BASE + 64 * MIB, 2 * MIB, block(BASE + 64 * MIB, 512, 4, state="active_pending_free")),
    ]
    trace = trace_of(snapshot(segments=state))

    assert trace.moments == 5
    assert reserved_curve(trace).tolist() == [20 * MIB] * 3 + [22 * MIB] * 2
    assert allocated_curve(trace).tolist() == [0, 4 * MIB, 6 * MIB, 6 * MIB, 6 * MIB]
    assert categories(trace) == ["optimizer_state", "unknown", "unknown"]
    assert trace.segments.small.tolist() == [False, True]
    assert trace.notes[0].startswith("No history was recorded")


def test_the_snapshot_s_sizes_are_right_where_they_differ():
    """A pool that does not split, in a torch that does not tell it."""
    trace = trace_of(
        snapshot(
            event("segment_alloc", BASE, 20 * MIB),
            event("alloc", BASE, 2 * MIB),
            segments=[segment(BASE, 20 * MIB, block(BASE, 20 * MIB, 2 * MIB))],
        )
    )

    assert trace.blocks.size_bytes.tolist() == [20 * MIB]
    assert (
        "1 blocks at the end have other sizes than the events lead to: the snapshot's own are shown."
        in trace.notes
    )


def test_sizes_that_cannot_be_are_not_taken_over():
    """At the end the first block has the room that the second one had meanwhile."""
    trace = trace_of(
        snapshot(
            event("segment_alloc", BASE, 20 * MIB),
            event("alloc", BASE, 2 * MIB),
            event("alloc", BASE + 2 * MIB, 18 * MIB),
            *freed(BASE + 2 * MIB, 18 * MIB),
            segments=[segment(BASE, 20 * MIB, block(BASE, 20 * MIB, 2 * MIB))],
        )
    )

    assert trace.blocks.size_bytes.tolist() == [2 * MIB, 18 * MIB]
    assert any(note.endswith("those of the events are shown.") for note in trace.notes)


def test_blocks_outside_their_segment_are_left_out():
    state = segment(BASE, 2 * MIB, block(BASE, 512), block(BASE + 256, 512), block(BASE + MIB, 4 * MIB))
    trace = trace_of(snapshot(segments=[state]))

    assert trace.blocks.size_bytes.tolist() == [512]
    assert "2 entries make no sense and were left out." in trace.notes


def test_blocks_that_only_one_side_knows_are_told():
    trace = trace_of(
        snapshot(
            event("segment_alloc", BASE, 20 * MIB),
            event("alloc", BASE, 2 * MIB),
            segments=[segment(BASE, 20 * MIB)],
        )
    )

    assert "1 blocks at the end are only in the events or only in the snapshot's segments." in trace.notes


def test_what_never_happened_so_is_told():
    trace = trace_of(
        snapshot(event("alloc", BASE, 2 * MIB), event("alloc", BASE + MIB, "a"), event("oom", 0, 1 << 50))
    )

    assert any("a block was given out where no memory is known: 1 times" in note for note in trace.notes)
    assert "1 entries make no sense and were left out." in trace.notes
    assert "The allocator ran out of memory once; 1,024 TiB were asked for first." in trace.notes
    assert any(note.startswith("It has no stacks") for note in trace.notes)
    assert any(note.startswith("It has no times") for note in trace.notes)


def test_two_cards_and_the_higher_peak_first():
    low, high = [event("segment_alloc", BASE, 2 * MIB), event("alloc", BASE, 100)], training()
    run = imported({"segments": [], "device_traces": [low, high, []]})

    assert [trace.device for trace in run.traces] == [1, 0]
    assert run.traces[0].tables is run.traces[1].tables


def test_streams_and_pools():
    trace = trace_of(
        snapshot(
            event("segment_alloc", BASE, 2 * MIB, stream=77, pool_id=(0, 1)),
            event("alloc", BASE, 100, stream=77, pool_id=[0, 1]),
        )
    )

    assert (trace.streams, trace.pools) == ((0, 77), ((0, 0), (0, 1)))
    assert (trace.blocks.stream.tolist(), trace.segments.pool.tolist()) == ([1], [1])


def test_settings_are_kept():
    trace = trace_of(
        snapshot(*training(), allocator_settings={"max_split_size": -1, "x": {"1": 0}, "no": [1]})
    )

    assert trace.settings == {"max_split_size": -1, "x": {"1": 0}}


# -- older forms -------------------------------------------------------------------------------------
def test_blocks_without_addresses_and_with_a_history():
    """As torch 2.0 wrote them."""
    past = {"addr": BASE, "real_size": 900, "frames": MOVE}
    state = {
        "device": 0,
        "address": BASE,
        "total_size": 2 * MIB,
        "stream": 0,
        "segment_type": "small",
        "blocks": [
            {"size": 512, "state": "inactive"},
            {"size": 1024, "requested_size": 900, "state": "active_allocated", "history": [past]},
        ],
    }
    trace = trace_of([state])

    assert trace.blocks.address.tolist() == [BASE + 512]
    assert trace.blocks.requested_bytes.tolist() == [900]
    assert trace.tables.stacks[trace.blocks.stack[0]]


def test_stacks_with_native_frames_keep_python_s_alone():
    native = [
        frame("??", 0, "torch::unwind::unwind()"),
        frame("/x/python3.12/ceval.c", 1, "_PyEval_EvalFrameDefault"),
    ]
    trace = trace_of(
        snapshot(event("segment_alloc", BASE, 2 * MIB), event("alloc", BASE, 9, frames=[*native, *FORWARD]))
    )

    frames = [trace.tables.frames[number] for number in trace.tables.stacks[trace.blocks.stack[0]]]
    assert [(each.file, each.line, each.function, each.user) for each in frames] == [
        ("models/net.py", 9, "forward", True),
        ("torch/nn/modules/module.py", 1790, "_call_impl", False),
        ("train.py", 5, "<module>", True),
    ]


def test_a_backward_on_autograd_s_threads_is_told_by_their_c_frames_or_by_having_none():
    engine = [frame("??", 0, "torch::autograd::Engine::thread_main(...)")]
    for frames in (engine, [], [frame(f"{PACKAGES}/torch/autograd/function.py", 300, "apply")]):
        trace = trace_of(
            snapshot(
                event("segment_alloc", BASE, 20 * MIB, frames=FORWARD),
                event("alloc", BASE, 2 * MIB, frames=FORWARD),
                event("alloc", BASE + 2 * MIB, 2 * MIB, frames=frames),
                event("alloc", BASE + 4 * MIB, 2 * MIB, frames=BACKWARD),
            )
        )

        assert [(span.first, span.phase) for span in trace.spans] == [(0, "forward"), (2, "backward")]
        assert trace.blocks.stack[1] == trace.blocks.stack[2] or frames[0:1] == frames != engine


# -- refused -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("data", [None, 1, "a", {}, {"a": 1}, [], {"segments": None, "x": 1}])
def test_other_data(data: object):
    if data in ([], {"segments": None, "x": 1}):
        assert run_of(data, 100, "a.pickle").traces == ()
        return
    with pytest.raises(
        RunError, match=r"a.pickle cannot be imported: it has neither segments nor device_traces"
    ):
        run_of(data, 100, "a.pickle")


def test_one_list_a_million_times_is_refused():
    events = [event("alloc", BASE, 1)] * 100_000
    data = pickle.dumps({"segments": [], "device_traces": [events] * 1000}, 4)

    with pytest.raises(RunError, match="it repeats its lists"):
        run_of(pickle.loads(data), len(data), "a.pickle")


def test_sizes_that_overflow_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("vramscope.run.imported.file.MOST_BYTES", 1 << 62)
    rows = [event("segment_alloc", BASE * n, 1 << 61) for n in range(1, 6)]

    with pytest.raises(
        RunError, match=r"a.pickle cannot be imported: its cuda:0 segments have sizes that cannot be"
    ):
        run_of(snapshot(*rows), 1 << 20, "a.pickle")


# -- real ones ---------------------------------------------------------------------------------------
TRAINS = """
import os, torch
torch.cuda.memory._record_memory_history(context="{context}", stacks="python", max_entries={entries})
model = torch.nn.Sequential(*[torch.nn.Linear(700, 700) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    x = torch.randn(64, 700, device="cuda")
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.memory._dump_snapshot(os.environ["TARGET"])
print(torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())
"""


@pytest.mark.virtual
@pytest.mark.parametrize("context", ["all", "alloc"])
def test_a_real_training(virtual, tmp_path: Path, context: str):
    """Parameters, gradients and Adam's states are what arithmetic says."""
    target = tmp_path / "train.pickle"
    code = TRAINS.format(context=context, entries=100_000)

    ran = virtual(unrecorded(code), TARGET=str(target)).check()

    run = import_snapshot(target)
    trace = run.trace
    assert trace is not None
    assert (run.check(), run.origin, run.name, trace.whole) == ((), "imported", "train.pickle", True)
    now, peak = map(int, ran.stdout.split()[-2:])
    curve = allocated_curve(trace)
    assert (int(curve[-1]), int(curve.max())) == (now, peak)
    parameters = 4 * 4 * (700 * 700 + 700)
    assert asked_for(trace, "parameter") == parameters
    assert asked_for(trace, "optimizer_state") == 2 * parameters
    assert asked_for(trace, "gradient") == 3 * parameters  # set to None after each of three steps
    assert asked_for(trace, "activation") > 0
    phases = [span.phase for span in trace.spans if span.phase != "other"]
    assert [phase for phase in phases if phase != "zero_grad"] == [
        "init",
        *["forward", "backward", "optimizer_step"] * 3,
    ]
    assert {span.step for span in trace.spans if span.phase == "optimizer_step"} == {1, 2, 3}
    assert not any(each.file.startswith("/") for each in trace.tables.frames)


@pytest.mark.virtual
def test_a_real_ring_that_was_full(virtual, tmp_path: Path):
    """Of the last 150 events the curve is the same as in the whole history."""
    targets = [tmp_path / "whole.pickle", tmp_path / "late.pickle"]
    for target, entries in zip(targets, (100_000, 150), strict=True):
        virtual(unrecorded(TRAINS.format(context="all", entries=entries)), TARGET=str(target)).check()

    whole, late = (import_snapshot(target).trace for target in targets)

    assert whole is not None and late is not None
    assert (whole.whole, late.whole, late.moments) == (True, False, 150)
    assert np.array_equal(allocated_curve(late), allocated_curve(whole)[-150:])
    assert np.array_equal(reserved_curve(late), reserved_curve(whole)[-150:])


def asked_for(trace: Trace, category: str) -> int:
    return int(trace.blocks.requested_bytes[trace.blocks.category == CATEGORIES.index(category)].sum())


SNAPSHOTS = Path(__file__).parents[3] / "shared/truth/snapshots"
PUBLIC = list(csv.DictReader((SNAPSHOTS / "index.csv").open())) if (SNAPSHOTS / "index.csv").is_file() else []


@pytest.mark.skipif(not PUBLIC, reason="the public snapshots are not here")
@pytest.mark.parametrize("row", PUBLIC, ids=lambda row: row["file"])
def test_public_snapshots(row: dict[str, str]):
    """Whichever tool wrote it, it becomes a run that adds up, with the state that the index tells."""
    path = SNAPSHOTS / row["file"]
    if not path.is_file():
        pytest.skip("this one is not here")

    run = import_snapshot(path)

    assert run.check() == ()
    assert run.traces and all(trace.notes for trace in run.traces)
    if row["file"].startswith("fb_mosaic"):  # made up: its segments tell more than their blocks add up to
        return
    trace = run.traces[0]
    assert int(allocated_curve(trace)[-1]) / MIB == pytest.approx(
        float(row["final_allocated_mib"]), abs=0.001
    )
    assert int(reserved_curve(trace).max()) / MIB == pytest.approx(float(row["peak_reserved_mib"]), abs=0.001)
    assert not any("blocks at the end" in note for note in trace.notes)
