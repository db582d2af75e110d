"""What `doctor` finds out."""

from __future__ import annotations

import shutil

from vramscope.errors import TorchError
from vramscope.virtual import doctor
from vramscope.virtual.build import ensure_built
from vramscope.virtual.wheel import find_wheel


def test_a_healthy_installation():
    diagnosis = doctor.diagnose()

    assert diagnosis.healthy
    assert {"system", "C compiler", "torch", "cuDNN", "virtual card", "cudart", "cublas"} <= {f.what for f in diagnosis.findings}


def test_torch_that_is_missing_ends_the_list_with_the_way_out(monkeypatch):
    def nothing():
        raise TorchError("no torch is installed; try: pip install torch")

    monkeypatch.setattr(doctor, "find_wheel", nothing)
    diagnosis = doctor.diagnose()

    assert not diagnosis.healthy
    assert (diagnosis.findings[-1].detail, diagnosis.findings[-1].try_) == ("no torch is installed", "try: pip install torch")


def test_no_compiler(monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert doctor._compiler().level == "error"


def test_a_symbol_that_no_stand_in_has_is_an_error_that_names_it(monkeypatch):
    wheel = find_wheel()
    wanted = {wheel.libraries["cublas"].name: {"cublasSgemm_v2", "cublasOfTheFuture"}}
    monkeypatch.setattr(doctor, "_wanted", lambda wheel: wanted)
    found = {f.what: f for f in doctor._missing(wheel, ensure_built(wheel))}

    assert found["cublas"].level == "error"
    assert "cublasOfTheFuture" in found["cublas"].detail
    assert "Sgemm" not in found["cublas"].detail


def test_what_is_refused_if_called_is_listed():
    wheel = find_wheel()
    stand_ins = ensure_built(wheel)
    assert doctor.refuses("cudart", "cudaIpcGetMemHandle", stand_ins)
    assert not doctor.refuses("cudart", "cudaMalloc", stand_ins)
