"""Run files: whole or not there, the same bytes for the same run, clear about what they are not."""

from __future__ import annotations

import json
import os
import re
import stat
import zipfile
from pathlib import Path

import pytest

from builders import trained, training
from vramscope.errors import RunError
from vramscope.run import store
from vramscope.run.journal import journal_of
from vramscope.run.store import Run, load_run, save_run

RUN = Run(trained(), journal_of(training()))


def test_there_and_back(tmp_path: Path):
    save_run(tmp_path / "a.vram", RUN)

    assert load_run(tmp_path / "a.vram") == RUN


def test_what_is_in_it(tmp_path: Path):
    save_run(tmp_path / "a.vram", RUN)

    with zipfile.ZipFile(tmp_path / "a.vram") as archive:
        assert archive.namelist() == ["format.json", "report.json", "journal.jsonl"]
        assert json.loads(archive.read("format.json")) == {"schema": "vramscope.run/1", "vramscope": "0.1.0"}


def test_the_same_run_gives_the_same_bytes(tmp_path: Path):
    save_run(tmp_path / "a.vram", RUN)
    save_run(tmp_path / "b.vram", RUN)

    assert (tmp_path / "a.vram").read_bytes() == (tmp_path / "b.vram").read_bytes()


def test_others_may_read_it_as_the_mask_says(tmp_path: Path):
    before = os.umask(0o027)
    try:
        save_run(tmp_path / "a.vram", RUN)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "a.vram").stat().st_mode) == 0o640


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    save_run(tmp_path / "a.vram", RUN)
    before = (tmp_path / "a.vram").read_bytes()

    def full(_run: Run) -> dict[str, bytes]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_parts", full)
    with pytest.raises(RunError, match=re.escape("No space left on device; choose another place with -o")):
        save_run(tmp_path / "a.vram", RUN)

    assert (tmp_path / "a.vram").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.vram"]


def test_cut_off_at_every_length(tmp_path: Path):
    save_run(tmp_path / "a.vram", RUN)
    data = (tmp_path / "a.vram").read_bytes()
    for length in range(0, len(data), 61):
        (tmp_path / "cut.vram").write_bytes(data[:length])
        with pytest.raises(RunError, match="is no run of vramscope, or was cut off"):
            load_run(tmp_path / "cut.vram")


def test_every_flipped_byte_is_found_or_harmless(tmp_path: Path):
    save_run(tmp_path / "a.vram", RUN)
    data = bytearray((tmp_path / "a.vram").read_bytes())
    for place in range(0, len(data), 37):
        changed = bytes(data[:place]) + bytes([data[place] ^ 0x40]) + bytes(data[place + 1 :])
        (tmp_path / "b.vram").write_bytes(changed)
        try:
            found = load_run(tmp_path / "b.vram")
        except RunError:
            continue
        assert found == RUN


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "it holds no format.json: it was not written by vramscope"),
        (
            {"format.json": '{"schema": "vramscope.run/2"}'},
            "newer vramscope (vramscope.run/2; this one reads",
        ),
        ({"format.json": '{"schema": "other/1"}'}, "its schema is 'other/1', not vramscope.run/1"),
        ({"format.json": "[]"}, "its schema is None"),
        ({"format.json": "{"}, "is no run of vramscope, or was cut off"),
        ({"format.json": '{"schema": "vramscope.run/1"}'}, "it holds no report.json"),
        (
            {"format.json": '{"schema": "vramscope.run/1"}', "report.json": "{}"},
            "its schema is None, not vramscope.rep",
        ),
    ],
)
def test_foreign_and_newer(tmp_path: Path, parts: dict[str, str], message: str):
    with zipfile.ZipFile(tmp_path / "a.vram", "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)

    with pytest.raises(RunError, match=re.escape(message)):
        load_run(tmp_path / "a.vram")


def test_a_part_that_would_fill_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    save_run(tmp_path / "a.vram", RUN)
    monkeypatch.setattr(store, "_LARGEST_PART_BYTES", 100)

    with pytest.raises(RunError, match=re.escape("its report.json would unpack to")):
        load_run(tmp_path / "a.vram")


def test_no_such_file(tmp_path: Path):
    with pytest.raises(RunError, match="No such file or directory"):
        load_run(tmp_path / "missing.vram")
