"""Recording changes nothing: a program sees the same memory, to the byte, with the recorder and without."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("model", ["resnet", "gpt2", "checkpointed"])
def test_the_programs_own_peaks_are_those_without_a_recorder(program, model):
    if model != "checkpointed":
        pytest.importorskip({"resnet": "torchvision", "gpt2": "transformers"}[model])
    watched = program("neutral.py", model).check()
    alone = program("neutral.py", model, recorded=False)

    assert alone.returncode == 0, alone.stderr
    assert watched.stdout == alone.stdout
    assert watched.peak_used_bytes == alone.peak_used_bytes
    assert len(watched.of("step")) == 3
    assert not alone.of("step")


@pytest.mark.parametrize("model", ["checkpointed"])
def test_the_recorded_peak_is_the_programs_own(program, model):
    ran = program("neutral.py", model).check()
    spans = [device for span in ran.of("span") for device in span["devices"]]

    assert max(d["peak_allocated_bytes"] for d in spans) == ran.facts[model]["peak_allocated_bytes"]
    assert max(d["peak_reserved_bytes"] for d in spans) == ran.facts[model]["peak_reserved_bytes"]


@pytest.mark.parametrize("model", ["checkpointed"])
def test_the_peaks_of_phases_alone_are_the_programs_own(program, model):
    """What Ended.unchanged holds every public program against."""
    peaks_only = program("neutral.py", model, history=False)
    alone = program("neutral.py", model, recorded=False)

    assert peaks_only.stdout == alone.stdout
    assert peaks_only.peak_used_bytes == alone.peak_used_bytes
    assert len(peaks_only.of("step")) == 3
