"""The replay against torch's own allocator: every block and every sum, at several points of each program."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from histories import BASE, MIB, event, freed, unrecorded
from vramscope.run.events import EVENT_TYPES, Events, Numbers, events_of
from vramscope.run.heap import Held, Placed
from vramscope.run.replay import Replayed, replay, unsplit_pools

PRELUDE = """
import gc, os, pickle, random, torch
torch.cuda.memory._record_memory_history(context="alloc", stacks="python", max_entries=10_000_000)
random.seed(5)
device, count = "cuda", 0

def look():
    global count
    stats = torch.cuda.memory_stats()
    snapshot = torch.cuda.memory._snapshot()
    told = {name: stats[f"{name}.all.current"] for name in ("allocated_bytes", "reserved_bytes")}
    told |= {f"peak_{name}": stats[f"{name}.all.peak"] for name in ("allocated_bytes", "reserved_bytes")}
    with open(os.path.join(os.environ["LOOKS"], f"{count:03}.pickle"), "wb") as file:
        pickle.dump((snapshot, told), file)
    count += 1

def churn(times=400, most=24 << 20, streams=None, keep=40):
    kept = []
    for turn in range(times):
        size = random.choice([random.randint(1, 5000), random.randint(1, 2 << 20), random.randint(1, most)])
        with torch.cuda.stream(random.choice(streams) if streams else None):
            kept.append(torch.empty(size, dtype=torch.uint8, device=device))
        if streams and turn % 5 == 0:
            kept[-1].record_stream(random.choice(streams))
        while len(kept) > keep or (kept and random.random() < 0.4):
            del kept[random.randrange(len(kept))]
        if turn % 100 == 99:
            look()
    return kept
"""
CHURN = "kept = churn(); look(); kept.clear(); torch.cuda.empty_cache(); look(); kept = churn(200); look()"
TRAINING = """
import torchvision
model = torchvision.models.resnet18().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    x = torch.randn(8, 3, 128, 128, device=device)
    loss = model(x).float().sum(); look()
    loss.backward(); look()
    optimizer.step(); optimizer.zero_grad(); look()
"""
POOLS = """
kept = churn(100)
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    inside = churn(200)
look()
del inside; gc.collect(); look()
del pool; gc.collect(); torch.cuda.empty_cache(); look()
"""
OUT_OF_MEMORY = """
kept = churn(200)
for size in (1 << 40, 12 << 30):
    try: kept.append(torch.empty(size, dtype=torch.uint8, device=device))
    except torch.OutOfMemoryError: pass
    look()
kept += [torch.empty(3 << 30, dtype=torch.uint8, device=device) for _ in range(3)]; look()
del kept[-2:]; kept += churn(100); look()
"""
GRAPHS = """
model = torch.nn.Sequential(*[torch.nn.Linear(1500, 1500) for _ in range(4)]).cuda()
x = torch.randn(64, 1500, device=device)
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    model(x).sum().backward()
torch.cuda.current_stream().wait_stream(side)
look()
graphs = [torch.cuda.CUDAGraph() for _ in range(2)]
for graph in graphs:
    with torch.cuda.graph(graph, pool=graphs[0].pool() if graph is graphs[1] else None):
        y = model(x); y.sum().backward()
    look()
kept = churn(50); del y, graphs, graph; gc.collect(); torch.cuda.empty_cache(); look()
"""
TOGGLED = """
kept = churn(100)
torch.cuda.memory._set_allocator_settings("expandable_segments:True"); kept += churn(100); look()
torch.cuda.memory._set_allocator_settings("expandable_segments:False"); kept += churn(100); look()
"""
UNSPLIT = """
kept = churn(100)
pool = torch.cuda.MemPool(no_split=True)
with torch.cuda.use_mem_pool(pool):
    inside = churn(100)
look()
"""
FRACTION = "torch.cuda.set_per_process_memory_fraction(0.02)\n"
STREAMS = "streams = [torch.cuda.Stream() for _ in range(2)] + [torch.cuda.current_stream()]\n"
PROGRAMS = {
    "default": (CHURN, ""),
    "rounded": (CHURN, "roundup_power2_divisions:4"),
    "rounded by size": (CHURN, "roundup_power2_divisions:[1:8,4:2,16:16,>:4]"),
    "limited splits": (CHURN, "max_split_size_mb:21"),
    "collecting": (FRACTION + CHURN, "garbage_collection_threshold:0.3"),
    "expandable": (CHURN, "expandable_segments:True"),
    "expandable, limited splits": (CHURN, "expandable_segments:True,max_split_size_mb:21"),
    "expandable, rounded": (CHURN, "expandable_segments:True,roundup_power2_divisions:8"),
    "streams": (STREAMS + "kept = churn(streams=streams); look(); torch.cuda.empty_cache(); look()", ""),
    "streams, expandable": (
        STREAMS + "kept = churn(streams=streams); look(); torch.cuda.empty_cache(); look()",
        "expandable_segments:True",
    ),
    "pools": (POOLS, ""),
    "pools, expandable": (POOLS, "expandable_segments:True"),
    "out of memory": (OUT_OF_MEMORY, ""),
    "out of memory, expandable": (OUT_OF_MEMORY, "expandable_segments:True"),
    "graphs": (GRAPHS, ""),
    "graphs, expandable": (GRAPHS, "expandable_segments:True"),
    "toggled": (TOGGLED, ""),
    "unsplit": (UNSPLIT, ""),
    "training": (TRAINING, ""),
    "training, expandable": (TRAINING, "expandable_segments:True"),
}


@pytest.mark.virtual
@pytest.mark.parametrize("name", PROGRAMS)
def test_replay_is_the_allocator(virtual, tmp_path: Path, name: str):
    code, variable = PROGRAMS[name]

    virtual(unrecorded(PRELUDE + code), LOOKS=str(tmp_path), PYTORCH_CUDA_ALLOC_CONF=variable).check()

    looks = [pickle.loads(path.read_bytes()) for path in sorted(tmp_path.glob("*.pickle"))]
    assert looks
    for snapshot, told in looks:
        compare(snapshot, told)


def replayed(*entries: dict[str, Any], start: Sequence[Held] = (), **settings: Any) -> Replayed:
    return replay(events_of(entries, Numbers(0), Numbers((0, 0))), settings, start)


def test_nothing_happened():
    found = replayed()

    assert (len(found.segments), len(found.blocks["born"]), found.faults) == (0, 0, ())


def test_a_rest_of_up_to_1_mib_is_not_cut_off():
    found = replayed(event("segment_alloc", BASE, 12 * MIB), event("alloc", BASE, 11 * MIB))

    assert found.blocks["size_bytes"].tolist() == [12 * MIB]


def test_a_free_waits_for_another_stream():
    free_requested, free_completed = freed(BASE, 4 * MIB)
    found = replayed(
        event("segment_alloc", BASE, 20 * MIB),
        event("alloc", BASE, 4 * MIB),
        free_requested,
        event("alloc", BASE + 4 * MIB, 2 * MIB),
        free_completed,
    )

    assert found.blocks["freed"].tolist() == [2, 5]
    assert found.blocks["returned"].tolist() == [4, 5]


def test_segments_that_touch_are_not_merged():
    found = replayed(
        event("segment_alloc", BASE, 2 * MIB),
        event("segment_alloc", BASE + 2 * MIB, 20 * MIB),
        event("segment_free", BASE, 2 * MIB),
        event("alloc", BASE + 2 * MIB, 5 * MIB),
    )

    assert found.faults == ()
    assert found.blocks["segment"].tolist() == [1]
    assert found.segments.freed.tolist() == [2, 4]


def test_a_mapped_range_is_cut_where_a_part_of_it_is_unmapped():
    """A block keeps to the part that its address is in."""
    found = replayed(
        event("segment_map", BASE, 60 * MIB),
        event("alloc", BASE, 15 * MIB),
        event("alloc", BASE + 15 * MIB, 30 * MIB),
        event("alloc", BASE + 45 * MIB, 15 * MIB),
        *freed(BASE + 15 * MIB, 30 * MIB),
        event("segment_unmap", BASE + 20 * MIB, 20 * MIB),
    )

    s = found.segments
    assert found.faults == ()
    rows = zip(s.address.tolist(), s.size_bytes.tolist(), s.born.tolist(), s.freed.tolist(), strict=True)
    assert sorted(rows) == [
        (BASE, 20 * MIB, 0, 7),
        (BASE + 20 * MIB, 20 * MIB, 0, 6),
        (BASE + 40 * MIB, 20 * MIB, 0, 7),
    ]
    assert s.address[found.blocks["segment"]].tolist() == [BASE, BASE, BASE + 40 * MIB]


def test_what_was_there_before_is_born_before():
    held = Held(BASE, 20 * MIB, blocks=(Placed(BASE + 2 * MIB, 3 * MIB, 3 * MIB),))
    found = replayed(event("alloc", BASE, 2 * MIB), *freed(BASE + 2 * MIB, 3 * MIB), start=[held])

    assert found.faults == ()
    assert found.blocks["born"].tolist() == [-1, 0]
    assert found.blocks["freed"].tolist() == [1, 3]
    assert found.segments.born.tolist() == [-1]


def test_a_block_of_before_grows_to_where_the_next_one_begins():
    """Only what was asked for was known of it: 3.5 MiB of a block of 4 MiB."""
    held = Held(BASE, 20 * MIB, blocks=(Placed(BASE, 7 * MIB // 2, 7 * MIB // 2),))
    found = replayed(event("alloc", BASE + 4 * MIB, 2 * MIB), start=[held])

    assert found.blocks["size_bytes"].tolist() == [4 * MIB, 2 * MIB]


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([event("alloc", BASE, 100)], "a block was given out where no memory is known"),
        ([event("free_requested", BASE, 100)], "a block was freed that is not known"),
        ([event("free_completed", BASE, 100)], "a block could be used again that is not known"),
        ([event("segment_free", BASE, MIB)], "a segment was given back that is not known"),
        ([event("segment_unmap", BASE, MIB)], "a range was unmapped that is not mapped"),
        ([event("segment_alloc", BASE, 0)], "a segment has no size"),
        ([event("segment_alloc", BASE, MIB)] * 2, "a segment was obtained where one is already"),
        ([event("segment_map", BASE, MIB)] * 2, "a range was mapped where one is already"),
        (
            [event("segment_alloc", BASE, 20 * MIB), event("alloc", BASE, 100), event("alloc", BASE, 100)],
            "a block was given out twice",
        ),
        (
            [event("segment_alloc", BASE, 2 * MIB), event("alloc", BASE + 512, 100)],
            "a block was given out from the middle of a free one",
        ),
        (
            [
                event("segment_alloc", BASE, 2 * MIB),
                event("alloc", BASE, 9),
                event("segment_free", BASE, 2 * MIB),
            ],
            "a segment was given back while blocks lay in it",
        ),
        (
            [
                event("segment_map", BASE, 2 * MIB),
                event("alloc", BASE, 9),
                event("segment_unmap", BASE, 2 * MIB),
            ],
            "a range was unmapped while blocks lay in it",
        ),
    ],
)
def test_what_cannot_have_happened_is_counted(entries: list[dict[str, Any]], fault: str):
    found = replayed(*entries)

    assert f"{fault}: 1 times" in found.faults
    assert (found.blocks["freed"] <= found.segments.freed[found.blocks["segment"]]).all()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 10),
            st.integers(0, 12).map(lambda place: BASE + place * (MIB // 2)),
            st.sampled_from([0, 1, 512, MIB // 2, 2 * MIB, 20 * MIB]),
        ),
        max_size=40,
    )
)
def test_any_events_give_a_history_that_adds_up(rows: list[tuple[int, int, int]]):
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    none = np.zeros(len(rows), np.int64)
    given_ = dict(zip(("action", "address", "size"), columns, strict=True))
    kinds = {name: np.array(given_.get(name, none), kind) for name, kind in EVENT_TYPES.items()}

    found = replay(Events(**kinds))

    b, s = found.blocks, found.segments
    assert (b["born"] <= b["freed"]).all() and (b["freed"] <= b["returned"]).all()
    assert (b["returned"] <= len(rows)).all()
    assert (s.born <= s.freed).all()
    assert (b["freed"] <= s.freed[b["segment"]]).all()
    assert (b["size_bytes"] >= b["requested_bytes"]).all()
    assert (curve(b, len(rows)) <= curve(segment_columns(found), len(rows))).all()


def test_a_million_events_take_seconds():
    """About 1 s where nothing else runs."""
    turns = 333_000
    places = BASE + np.arange(100, dtype=np.uint64) * np.uint64(5 * MIB)
    address = np.concatenate([places[:1], np.repeat(places[np.arange(turns) % 100], 3)])
    kinds = np.concatenate([[3], np.tile([0, 1, 2], turns)])
    size = np.concatenate([[500 * MIB], np.full(3 * turns, 5 * MIB)])
    none = np.zeros(len(kinds), np.int64)
    given_ = {"action": kinds, "address": address, "size": size}
    columns = {name: np.asarray(given_.get(name, none)).astype(kind) for name, kind in EVENT_TYPES.items()}

    began = time.perf_counter()
    found = replay(Events(**columns))

    assert time.perf_counter() - began < 10
    assert len(found.blocks["born"]) == turns


def compare(snapshot: dict[str, Any], told: dict[str, int]) -> None:
    streams, pools = Numbers(0), Numbers((0, 0))
    events = events_of(snapshot["device_traces"][0], streams, pools)
    told_settings = snapshot["allocator_settings"]
    found = replay(events, told_settings, unsplit=unsplit_pools(held(snapshot, pools), told_settings))

    assert found.faults == ()
    assert live_blocks(found, events) == told_blocks(snapshot)
    assert live_segments(found, events, streams, pools) == told_segments(snapshot)
    allocated, reserved = curve(found.blocks, len(events)), curve(segment_columns(found), len(events))
    assert int(allocated[-1]) == told["allocated_bytes"]
    assert int(reserved[-1]) == told["reserved_bytes"]
    assert int(allocated.max()) == told["peak_allocated_bytes"]
    assert int(reserved.max()) == told["peak_reserved_bytes"]


def held(snapshot: dict[str, Any], pools: Numbers) -> Iterator[Held]:
    for each in snapshot["segments"]:
        blocks = [
            Placed(block["address"], block["size"], block["requested_size"])
            for block in each["blocks"]
            if block["state"] != "inactive"
        ]
        pool = pools[each["segment_pool_id"]]
        yield Held(each["address"], each["total_size"], 0, pool, each["is_expandable"], tuple(blocks))


def live_blocks(found: Replayed, events: Events) -> set[tuple[int, int, int, bool]]:
    """Address, size, requested bytes and whether it is allocated, of all that is not free."""
    b = found.blocks
    there = b["returned"] == len(events)
    columns = (b["address"], b["size_bytes"], b["requested_bytes"], b["freed"] == len(events))
    return set(zip(*(column[there].tolist() for column in columns), strict=True))


def told_blocks(snapshot: dict[str, Any]) -> set[tuple[int, int, int, bool]]:
    return {
        (block["address"], block["size"], block["requested_size"], block["state"] == "active_allocated")
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        if block["state"] != "inactive"
    }


def live_segments(found: Replayed, events: Events, streams: Numbers, pools: Numbers) -> list[tuple[Any, ...]]:
    """Adjacent mapped pieces of one stream and pool are one, as torch's snapshot has them."""
    handles, ids = list(streams), list(pools)
    s = found.segments
    rows = np.flatnonzero(s.freed == len(events))
    merged: list[tuple[Any, ...]] = []
    for row in sorted(rows, key=lambda each: int(s.address[each])):
        address, size = int(s.address[row]), int(s.size_bytes[row])
        key = (handles[s.stream[row]], ids[s.pool[row]], bool(s.small[row]), bool(s.expandable[row]))
        if key[3] and merged and merged[-1][2:] == key and sum(merged[-1][:2]) == address:
            address, size = merged[-1][0], merged.pop()[1] + size
        merged.append((address, size, *key))
    return merged


def told_segments(snapshot: dict[str, Any]) -> list[tuple[Any, ...]]:
    return sorted(
        (
            segment["address"],
            segment["total_size"],
            segment["stream"],
            tuple(segment["segment_pool_id"]),
            segment["segment_type"] == "small",
            segment["is_expandable"],
        )
        for segment in snapshot["segments"]
    )


def segment_columns(found: Replayed) -> dict[str, np.ndarray]:
    s = found.segments
    return {"born": s.born, "freed": s.freed, "size_bytes": s.size_bytes}


def curve(columns: dict[str, np.ndarray], moments: int) -> np.ndarray:
    change = np.zeros(moments + 1, np.int64)
    np.add.at(change, np.maximum(columns["born"], 0), columns["size_bytes"])
    np.subtract.at(change, columns["freed"], columns["size_bytes"])
    return np.cumsum(change[:moments])
