"""Snapshots that are wrong end in a refusal or in a sound run; bench/fuzz_snapshots.py tries ten thousand."""

from __future__ import annotations

import pickle
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everything import ask_everything
from snapshot_mutants import WORDS, mutant, originals
from vramscope.errors import RunError
from vramscope.run.run import Run
from vramscope.run.snapshot import run_of
from vramscope.run.soundness import require_sound
from vramscope.run.unpickle import unpickled

SECONDS = 10


def imported(data: bytes) -> Run | None:
    """The run, sound and with sums that close; None if it was refused."""
    try:
        run = run_of(unpickled(data), len(data), "a.pickle")
    except RunError:
        return None
    for trace in run.traces:
        require_sound(trace, "trace")
    assert run.check() == ()
    return run


@pytest.mark.parametrize("number", range(len(originals())))
def test_the_originals_are_right(number: int):
    assert imported(originals()[number]) is not None


@pytest.mark.parametrize("seed", range(300))
def test_wrong_files(seed: int):
    began = time.perf_counter()

    run = imported(mutant(seed))

    if run is not None and seed % 10 == 0:
        ask_everything(run)
    assert time.perf_counter() - began < SECONDS


_VALUES = st.recursive(
    st.sampled_from([each for each in WORDS if not isinstance(each, (dict, list))]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["action", "addr", "size", "stream", "time_us", "frames", "blocks", "state", "address"]
            )
            | st.sampled_from(
                ["total_size", "requested_size", "history", "is_expandable", "name", "filename", "line"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@settings(max_examples=200, deadline=None)
@given(segments=_VALUES, traces=_VALUES, rest=_VALUES)
def test_any_values(segments: object, traces: object, rest: object):
    data = {
        "segments": segments,
        "device_traces": [traces],
        "allocator_settings": rest,
        "external_annotations": rest,
    }

    run = run_of(data, 1 << 20, "a.pickle")

    assert run.check() == ()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes):
    for each in (data, b"\x80\x04" + data, pickle.dumps({"segments": []}, 4)[:-1] + data):
        imported(each)
