"""What is written of a run for other programs, read back as those read it."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import pickletools
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import trained
from histories import BASE, MIB, block, event, freed, segment, snapshot
from million import million_run
from traces import Story, training_story
from vramscope.run.categories import CATEGORIES
from vramscope.run.curves import allocated_curve, category_curves, reserved_curve
from vramscope.run.run import Run
from vramscope.run.snapshot import run_of
from vramscope.run.trace import Trace
from vramscope.run.unpickle import unpickled
from vramscope.views.perfetto import perfetto_json
from vramscope.views.run_csv import COLUMNS, run_csv
from vramscope.views.run_json import run_json
from vramscope.views.snapshot import snapshot_of, snapshot_pickle


def expandable() -> Run:
    """Mapped ranges that are cut, a second stream, a private pool, a block that waits."""
    requested, completed = freed(BASE, 15 * MIB)
    other = {"stream": 77, "pool_id": (0, 1)}
    events = [
        event("segment_map", BASE, 60 * MIB),
        event("alloc", BASE, 15 * MIB, 5),
        event("alloc", BASE + 15 * MIB, 30 * MIB, 6),
        event("alloc", BASE + 45 * MIB, 15 * MIB, 7),
        *freed(BASE + 15 * MIB, 30 * MIB, 8),
        event("segment_unmap", BASE + 20 * MIB, 20 * MIB, 9),
        event("segment_alloc", BASE + 200 * MIB, 2 * MIB, 10, **other),
        event("alloc", BASE + 200 * MIB, 700, 10, **other),
        requested,
    ]
    assert completed
    return run_of(snapshot(*events), 100_000, "expandable.pickle")


def begun_late() -> Run:
    """A block of before that goes and one that stays."""
    held = segment(BASE, 20 * MIB, block(BASE, 4 * MIB, 4 * MIB - 100))
    return run_of(snapshot(*freed(BASE + 4 * MIB, 3 * MIB), segments=[held]), 100_000, "late.pickle")


RUNS = {
    "training": lambda: training_story().run(),
    "expandable": expandable,
    "begun late": begun_late,
    "two cards": lambda: replace(
        training_story().run(), traces=(training_story().trace(), replace(training_story().trace(), device=1))
    ),
    "two processes": lambda: replace(training_story().run(), traces=(training_story().trace(),) * 2),
    "empty": lambda: Story().run(),
    "nothing": lambda: Run(None, name="nothing"),
}


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> Run:
    made: Run = RUNS[request.param]()
    return made


# -- torch's snapshot --------------------------------------------------------------------------------
def steps_of(curve: np.ndarray) -> list[int]:
    """A curve's values without repetitions: two events may be one elsewhere."""
    changes = np.flatnonzero(np.diff(curve, prepend=-1))
    return [int(each) for each in curve[changes]]


def read_back(run: Run) -> Run:
    data = snapshot_pickle(run)
    return run_of(unpickled(data), len(data), run.name)


def test_a_snapshot_reads_back_to_the_same_curves(run: Run):
    again = read_back(run)

    assert again.check() == ()
    written = [trace for trace in run.traces if trace.moments]
    assert len(again.traces) == len(written)
    for one, other in zip(written, again.traces, strict=True):
        assert steps_of(allocated_curve(other)) == steps_of(allocated_curve(one))
        assert steps_of(reserved_curve(other)) == steps_of(reserved_curve(one))
        for category, other_category in zip(category_curves(one), category_curves(other), strict=True):
            assert steps_of(other_category) == steps_of(category)


def test_a_snapshot_keeps_modules_and_names():
    trace, again = training_story().trace(), read_back(training_story().run()).trace

    assert again is not None
    assert described(again) == described(trace)


def described(trace: Trace) -> list[tuple[str, str, str]]:
    blocks, tables = trace.blocks, trace.tables
    return [
        (CATEGORIES[category], tables.modules[module].path, tables.names[name])
        for category, module, name in zip(blocks.category, blocks.module, blocks.name, strict=True)
    ]


def test_a_snapshot_has_the_state_at_the_end():
    """Two ranges that touch no more, a block that waits for its stream, and the free ones between."""
    found = snapshot_of(expandable())

    states = {
        each["address"] - BASE: [
            (item["address"] - BASE, item["size"], item["state"]) for item in each["blocks"]
        ]
        for each in found["segments"]
    }
    assert states == {
        0: [(0, 15 * MIB, "active_pending_free"), (15 * MIB, 5 * MIB, "inactive")],
        40 * MIB: [(40 * MIB, 5 * MIB, "inactive"), (45 * MIB, 15 * MIB, "active_allocated")],
        200 * MIB: [(200 * MIB, 1024, "active_allocated"), (200 * MIB + 1024, 2 * MIB - 1024, "inactive")],
    }
    small = found["segments"][-1]
    assert (small["stream"], small["segment_pool_id"], small["segment_type"]) == (77, (0, 1), "small")
    assert (small["allocated_size"], small["active_size"], small["requested_size"]) == (1024, 1024, 700)


def test_a_snapshot_is_of_pickle_s_protocol_4():
    """The memory_viz page reads no other."""
    (first, protocol, _), *rest = pickletools.genops(snapshot_pickle(training_story().run()))

    assert (first.name, protocol) == ("PROTO", 4)
    assert max(each.proto for each, _, _ in rest) <= 4


VIZ = """
import os, runpy, sys
source, folder = sys.argv[1:]
os.environ["HOME"] = folder
os.makedirs(folder + "/.cache")
with open(folder + "/.cache/flamegraph.pl", "w") as file:  # else torch would fetch it
    file.write("#!/bin/sh\\ncat\\n")
os.chmod(folder + "/.cache/flamegraph.pl", 0o755)
for verb, *options in (
    ("stats",), ("trace",), ("segments", "-o", folder + "/segments.txt"), ("memory", "-o", folder + "/memory.txt"),
    ("trace_plot", "-o", folder + "/plot.html"), ("segment_plot", "-o", folder + "/plots.html"),
):
    sys.argv = ["_memory_viz", verb, source, *options]
    runpy.run_module("torch.cuda._memory_viz", run_name="__main__")
    print("DONE", verb)
"""


@pytest.mark.parametrize("name", ["training", "expandable", "begun late", "two cards"])
def test_torch_s_own_tools_read_a_snapshot(tmp_path: Path, name: str):
    """`stats` raises where a segment's parts do not add up to it."""
    pytest.importorskip("torch")
    source = tmp_path / "a.pickle"
    source.write_bytes(snapshot_pickle(RUNS[name]()))

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", VIZ, str(source), str(tmp_path / "home")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("DONE") == 6
    assert "total_allocated" in done.stdout
    assert (tmp_path / "home/plot.html").read_text().count("base64")


# -- Perfetto ----------------------------------------------------------------------------------------
def events_of(run: Run) -> list[dict[str, Any]]:
    document = json.loads(perfetto_json(run))
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"}
    events = document["traceEvents"]
    assert isinstance(events, list)
    return events


def test_events_are_as_the_format_wants_them(run: Run):
    """Trace Event Format: a phase, a process and a time for each; a duration for slices, numbers for counters."""
    for each in events_of(run):
        assert each["ph"] in ("M", "X", "C")
        assert type(each["pid"]) is int and isinstance(each["name"], str)
        if each["ph"] == "M":
            assert isinstance(each["args"]["name"], str)
            continue
        assert type(each["ts"]) is int and each["ts"] >= 0
        if each["ph"] == "X":
            assert type(each["dur"]) is int and each["dur"] >= 0 and type(each["tid"]) is int
        else:
            assert all(type(value) is int and value >= 0 for value in each["args"].values())


def test_counters_are_the_curves():
    run = training_story().run()
    trace, events = run.traces[0], events_of(run)

    for name, curve in (("allocated", allocated_curve(trace)), ("reserved", reserved_curve(trace))):
        values = [each["args"]["bytes"] for each in events if each["ph"] == "C" and each["name"] == name]
        assert values == steps_of(curve)
    counted = {each["name"] for each in events if each["ph"] == "C"}
    assert {"allocated: parameter", "allocated: optimizer_state"} <= counted
    assert "allocated: kv_cache" not in counted


def test_a_peak_within_a_microsecond_is_not_lost():
    story = Story()
    first = story.alloc(4096)
    story.free(first)
    story.alloc(512)
    trace = replace(story.trace(), times_us=np.array([0, 7, 7, 7, 7], np.int64))
    run = replace(story.run(), traces=(trace,))

    counters = [(each["ts"], each["args"]["bytes"]) for each in events_of(run) if each["name"] == "allocated"]
    assert counters == [(0, 0), (7, 4096), (8, 512)]


def test_slices_are_the_phases_and_steps():
    events = events_of(training_story().run())

    slices = [(each["name"], each["tid"], each["ts"], each["dur"]) for each in events if each["ph"] == "X"]
    phases = [name for name, row, _, _ in slices if row == 1]
    assert phases == ["init", *["forward", "backward", "optimizer_step", "zero_grad", "other"] * 2]
    assert [name for name, row, _, _ in slices if row == 2] == ["step 1", "step 2"]
    assert all(one[2] + one[3] <= other[2] for one, other in pairwise(slices[:11]))


def test_without_times_events_are_a_microsecond_apart():
    trace = training_story().trace()
    run = Run(None, traces=(replace(trace, times_us=np.zeros(trace.moments, np.int64)),), name="a")

    assert json.loads(perfetto_json(run))["otherData"]["start_us"] is None
    assert max(each.get("ts", 0) for each in events_of(run)) == trace.moments - 1


# -- CSV ---------------------------------------------------------------------------------------------
def rows_of(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(run_csv(run))))


def test_a_line_per_block(run: Run):
    rows = rows_of(run)

    assert len(rows) == sum(len(trace.blocks) for trace in run.traces)
    assert run_csv(run).splitlines()[0].split(",") == list(COLUMNS)
    assert sum(int(row["size_bytes"]) for row in rows) == sum(
        int(trace.blocks.size_bytes.sum()) for trace in run.traces
    )


def test_a_line_in_full():
    row = rows_of(training_story().run())[3]

    assert row == {
        "process": "1",
        "device": "0",
        "category": "input",
        "module": "",
        "name": "",
        "file": "train.py",
        "line": "9",
        "function": "main",
        "phase": "forward",
        "step": "1",
        "requested_bytes": "8192",
        "size_bytes": "8192",
        "born": "7",
        "freed": "53",
        "born_us": "7000",
        "freed_us": "53000",
        "address": "0x7f0000003000",
        "stream": "0",
        "segment_address": "0x7f0000003000",
        "segment_bytes": "8192",
        "pool": "0/0",
    }


def test_what_is_not_known_is_empty():
    row = rows_of(begun_late())[0]

    assert (row["born"], row["born_us"], row["freed"], row["phase"], row["module"]) == ("", "", "", "", "")


# -- JSON --------------------------------------------------------------------------------------------
def test_all_of_a_run(run: Run):
    document = json.loads(run_json(run))

    assert document["schema"] == "vramscope.export/1"
    assert (document["name"], document["origin"], document["report"]) == (run.name, run.origin, None)
    assert document["categories"] == list(CATEGORIES)
    for told, trace in zip(document["traces"], run.traces, strict=True):
        assert told["allocated_bytes"] == allocated_curve(trace).tolist()
        assert told["blocks"]["address"] == trace.blocks.address.tolist()
        assert told["segments"]["small"] == trace.segments.small.tolist()
        assert document["tables"][told["tables"]]["stacks"] == [list(stack) for stack in trace.tables.stacks]


def test_tables_that_traces_share_are_there_once():
    trace = training_story().trace()

    document = json.loads(run_json(Run(trained(), traces=(trace, replace(trace, device=1)), name="a")))

    assert len(document["tables"]) == 1
    assert [told["tables"] for told in document["traces"]] == [0, 0]
    assert document["report"]["schema"] == "vramscope.report/1"


def test_numbers_that_json_has_not_are_null():
    trace = replace(
        training_story().trace(), settings={"a": float("nan"), "b": {"c": float("inf")}, "d": 0.5}
    )

    document = json.loads(run_json(Run(None, traces=(trace,))))

    assert document["traces"][0]["settings"] == {"a": None, "b": {"c": None}, "d": 0.5}


@pytest.mark.parametrize("write", [snapshot_pickle, perfetto_json, run_csv, run_json])
def test_a_hundred_thousand_events_take_a_second(write: Any):
    run = million_run(100_000)
    began = time.perf_counter()

    assert write(run)

    assert time.perf_counter() - began < 10  # about 0.3 s where nothing else runs


def test_what_pickle_itself_reads_is_the_same():
    run = training_story().run()

    assert pickle.loads(snapshot_pickle(run)) == snapshot_of(run)
