"""The package's face."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

import vramscope


def test_all_is_sorted_whole_and_there():
    assert vramscope.__all__ == sorted(vramscope.__all__)
    assert {*vramscope._HOMES, "mark", "__version__"} == set(vramscope.__all__)
    assert all(getattr(vramscope, name) is not None for name in vramscope.__all__)
    assert dir(vramscope) == vramscope.__all__


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'vramscope' has no attribute 'forecast'"):
        _ = vramscope.forecast


def test_the_version_is_that_of_the_package():
    metadata = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")

    assert f'\nversion = "{vramscope.__version__}"\n' in metadata


def test_mark_asks_the_recorder(monkeypatch: pytest.MonkeyPatch):
    marked: list[str] = []
    recorder = ModuleType("vramscope.recording.memory")
    recorder.mark = marked.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, recorder.__name__, recorder)

    vramscope.mark("epoch\n2")

    assert marked == ["epoch\n2"]


def test_mark_outside_of_a_run_is_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "vramscope.recording.memory", raising=False)

    vramscope.mark("nothing")
