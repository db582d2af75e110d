"""Pictures: timm's training loop, torchvision's detectors and segmentation, ultralytics' YOLO, a diffusers UNet."""

from __future__ import annotations

import pytest


def test_timm_trains_and_validates(program, workspaces):
    pytest.importorskip("timm")
    ran = program("timm_train.py").check().unchanged()

    assert len(ran.of("step")) == 3  # of each of its two optimizers, one after the other
    states = ran.facts["states"]
    # Parameters, gradients, two moments, the averaged weights; the rest is buffers and the last batch.
    assert states["allocated_bytes"] == pytest.approx(5 * states["parameter_bytes"] + workspaces, rel=0.02)
    assert ran.peak("amp") < 0.9 * ran.peak("fp32")


def test_torchvision_detects_and_segments(program):
    pytest.importorskip("torchvision")
    ran = program("vision.py").check().unchanged()

    parameters = ran.facts["fasterrcnn model"]["parameter_bytes"]
    assert ran.peak("fasterrcnn") > 3 * parameters  # with gradients and momentum
    assert ran.peak("fasterrcnn inference") < ran.peak("fasterrcnn") / 3
    assert ran.peak("lraspp") < ran.peak("deeplabv3")
    kept = [entry for entry in ran.of("assumed") if entry["what"] == "keep"]
    assert kept, "non-maximum suppression has to say what it assumes"


def test_ultralytics_yolo_with_its_own_loss(program):
    pytest.importorskip("ultralytics")
    ran = program("yolo.py").check().unchanged()

    assert len(ran.of("step")) == 3
    assert ran.peak("yolo") > 3 * ran.facts["model"]["parameter_bytes"]


def test_diffusers_unet_under_autocast(program):
    pytest.importorskip("diffusers")
    ran = program("unet.py", "fp32", "bf16").check().unchanged()

    assert len(ran.of("step")) == 3
    assert 4 * ran.facts["model"]["parameter_bytes"] < ran.peak("bf16") < 0.9 * ran.peak("fp32")
