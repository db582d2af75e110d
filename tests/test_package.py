"""The package's face."""

from __future__ import annotations

import json
from pathlib import Path

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


def test_mark_writes_a_line_into_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    journal = tmp_path / "journal"
    journal.write_text('{"before": 1}\n')
    monkeypatch.setenv("VRAMSCOPE_JOURNAL", str(journal))

    vramscope.mark("epoch\n2")

    before, line, rest = journal.read_text().split("\n")
    assert (before, rest) == ('{"before": 1}', "")
    assert json.loads(line)["kind"] == "mark"
    assert json.loads(line)["text"] == "epoch\n2"


def test_mark_outside_of_a_run_is_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("VRAMSCOPE_JOURNAL", raising=False)

    vramscope.mark("nothing")
