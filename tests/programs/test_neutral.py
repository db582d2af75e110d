"""Recording changes nothing: a program sees the same memory, to the byte, with the recorder and without."""

from __future__ import annotations

import pytest
from public_programs import run_program


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


@pytest.mark.parametrize(
    ("script", "library"),
    [
        *(("accelerate_fp16.py", "accelerate"), ("compiled.py", "torch"), ("gcn.py", "torch_geometric")),
        *(("generate.py", "transformers"), ("lightning_fit.py", "lightning"), ("peft_lora.py", "peft")),
        *(("ppo.py", "torch"), ("qlora.py", "bitsandbytes"), ("recurrent.py", "torch"), ("timm_train.py", "timm")),
        *(("trainer_bert.py", "accelerate"), ("unet.py", "diffusers"), ("vision.py", "torchvision"), ("yolo.py", "ultralytics")),
    ],
)
def test_following_every_allocation_changes_no_peak(tmp_path, script, library):
    """Against the peaks of phases alone, which the tests above hold against no recorder at all."""
    pytest.importorskip(library)
    folders = tmp_path / "followed", tmp_path / "peaks"  # a compiler that finds its work done allocates less
    for folder in folders:
        folder.mkdir()
    followed = run_program(folders[0], script).check()
    peaks_only = run_program(folders[1], script, history=False)

    assert peaks_only.returncode == 0, peaks_only.stderr
    assert peaks_only.traces == ()
    assert followed.peak_used_bytes == peaks_only.peak_used_bytes
    assert _peaks(followed) == _peaks(peaks_only)
    told = [
        {name: facts.get("peak_allocated_bytes") for name, facts in ran.facts.items()} for ran in (followed, peaks_only)
    ]
    assert told[0] == told[1]


def _peaks(ran) -> dict[int, tuple[int, int]]:
    """Per step the highest allocated and reserved bytes."""
    found: dict[int, tuple[int, int]] = {}
    for span in ran.of("span"):
        for device in span["devices"]:
            before = found.get(span["step"], (0, 0))
            found[span["step"]] = (
                max(before[0], device["peak_allocated_bytes"]),
                max(before[1], device["peak_reserved_bytes"]),
            )
    return found
