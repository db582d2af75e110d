"""Run files: whole or not there, the same bytes for the same run, clear about what they are not."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from builders import trained, training
from million import million_run
from same import assert_same
from traces import Story, training_story
from vramscope.errors import RunError
from vramscope.run import archive
from vramscope.run.journal import journal_of, write_journal
from vramscope.run.run import IMPORTED, Run
from vramscope.run.schema import report_to_dict
from vramscope.run.store import load_run, save_run
from vramscope.run.trace import Optimizer

STORY = training_story().trace()
RUN = Run(trained(), journal_of(training()), (STORY,), name="train.py")


def imported() -> Run:
    """A snapshot's run: no report, a second allocator with the first one's tables, every field in use."""
    first = replace(
        STORY,
        settings={"expandable_segments": True, "divisions": {"1": 0, "[256": 8}, "threshold": 0.5},
        streams=(0, 94_000_000_000_000),
        pools=((0, 0), (7, 1)),
        notes=("what was freed before is not known",),
        whole=False,
    )
    second = replace(Story().span("other").trace(), device=1, tables=first.tables)
    return Run(None, traces=(first, second), origin=IMPORTED, name="dump.pickle")


def test_there_and_back(tmp_path: Path):
    save_run(tmp_path / "a.vram", RUN)

    assert_same(load_run(tmp_path / "a.vram"), RUN)


def test_an_imported_run_there_and_back(tmp_path: Path):
    save_run(tmp_path / "a.vram", imported())

    found = load_run(tmp_path / "a.vram")

    assert_same(found, imported())
    assert found.traces[0].tables is found.traces[1].tables


def test_a_run_without_events_there_and_back(tmp_path: Path):
    run = Run(None, traces=(Story().trace(),))
    save_run(tmp_path / "a.vram", run)

    assert_same(load_run(tmp_path / "a.vram"), run)


def test_what_is_in_it(tmp_path: Path):
    save_run(tmp_path / "a.vram", RUN)

    with zipfile.ZipFile(tmp_path / "a.vram") as file:
        names = file.namelist()
        assert [name for name in names if not name.endswith(".npy")] == [
            "format.json",
            "report.json",
            "journal.jsonl",
            "tables/0.json",
            "traces/0.json",
        ]
        assert json.loads(file.read("format.json")) == {
            "schema": "vramscope.run/2",
            "vramscope": "0.1.0",
            "origin": "predicted",
            "name": "train.py",
            "tables": 1,
            "traces": 1,
        }
        with file.open("traces/0/blocks/category.npy") as column:
            assert np.array_equal(np.load(column, allow_pickle=False), STORY.blocks.category)


def test_tables_of_one_process_are_kept_once(tmp_path: Path):
    save_run(tmp_path / "a.vram", imported())

    with zipfile.ZipFile(tmp_path / "a.vram") as file:
        assert [name for name in file.namelist() if re.fullmatch(r"t\w+/\d.json", name)] == [
            "tables/0.json",
            "traces/0.json",
            "traces/1.json",
        ]


def test_the_same_run_gives_the_same_bytes(tmp_path: Path):
    save_run(tmp_path / "a.vram", RUN)
    save_run(tmp_path / "b.vram", RUN)

    assert (tmp_path / "a.vram").read_bytes() == (tmp_path / "b.vram").read_bytes()


def test_a_file_of_the_schema_before(tmp_path: Path):
    _zip(
        tmp_path / "a.vram",
        {
            "format.json": '{"schema": "vramscope.run/1", "vramscope": "0.1.0"}',
            "report.json": json.dumps(report_to_dict(trained())),
            "journal.jsonl": write_journal(journal_of(training())),
        },
    )

    assert load_run(tmp_path / "a.vram") == Run(trained(), journal_of(training()))


def test_a_report_without_the_fields_that_came_later(tmp_path: Path):
    report = report_to_dict(trained())
    del report["retries"], report["damaged_lines"], report["card"]["memory_low_bytes"]
    form = '{"schema": "vramscope.run/1"}'
    _zip(tmp_path / "a.vram", {"format.json": form, "report.json": json.dumps(report), "journal.jsonl": ""})

    assert load_run(tmp_path / "a.vram") == Run(trained())


def test_a_million_events_are_a_small_file_and_quickly_there(tmp_path: Path):
    run = million_run()
    begun = time.process_time()
    save_run(tmp_path / "a.vram", run)
    saved = time.process_time()
    found = load_run(tmp_path / "a.vram")
    loaded = time.process_time()

    assert (tmp_path / "a.vram").stat().st_size < 30_000_000
    assert saved - begun < 3
    assert loaded - saved < 1
    assert found.check() == ()
    assert_same(found, run)


def test_lists_in_settings_come_back_as_tuples(tmp_path: Path):
    adam = Optimizer("Adam", 3, settings={"betas": [0.9, 0.999], "lr": float("inf"), "name": None})
    trace = replace(STORY, tables=replace(STORY.tables, optimizers=(adam,)))
    save_run(tmp_path / "a.vram", replace(RUN, traces=(trace,)))

    (found,) = load_run(tmp_path / "a.vram").traces

    assert found.tables.optimizers[0].settings == {"betas": (0.9, 0.999), "lr": float("inf"), "name": None}


def test_others_may_read_it_as_the_mask_says(tmp_path: Path):
    before = os.umask(0o027)
    try:
        save_run(tmp_path / "a.vram", RUN)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "a.vram").stat().st_mode) == 0o640


FULL_DISK = """
import resource, signal, sys
sys.path[:0] = {paths!r}
from million import million_run
from vramscope.errors import RunError
from vramscope.run.store import save_run
run = million_run(20_000)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    save_run("a.vram", run)
except RunError as error:
    print(error)
"""


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path):
    save_run(tmp_path / "a.vram", RUN)
    before = (tmp_path / "a.vram").read_bytes()

    code = FULL_DISK.format(paths=sys.path)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)

    assert done.stdout == "cannot write a.vram: File too large; choose another place with -o\n", done.stderr
    assert (tmp_path / "a.vram").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.vram"]


def test_a_folder_that_is_not_there(tmp_path: Path):
    with pytest.raises(RunError, match=r"cannot write .*missing/a.vram: No such file or directory; choose"):
        save_run(tmp_path / "missing" / "a.vram", RUN)


def test_a_run_that_could_not_be_read_is_not_written(tmp_path: Path):
    broken = replace(STORY, blocks=replace(STORY.blocks, module=STORY.blocks.module + 99))

    with pytest.raises(
        RunError, match=r"cannot write .*a.vram: its traces/0 blocks module has a number that is"
    ):
        save_run(tmp_path / "a.vram", replace(RUN, traces=(broken,)))
    negative = replace(STORY, spans=(replace(STORY.spans[0], outside_bytes=-1),))
    with pytest.raises(RunError, match=r"its traces/0 spans\[0\].outside_bytes is -1, not a whole number"):
        save_run(tmp_path / "a.vram", replace(RUN, traces=(negative,)))

    assert list(tmp_path.iterdir()) == []


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
        assert_same(found, RUN)


FORM = {"schema": "vramscope.run/2", "origin": "predicted", "name": "", "tables": 0, "traces": 0}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "it holds no format.json: it was not written by vramscope"),
        (
            {"format.json": '{"schema": "vramscope.run/3"}'},
            "newer vramscope (vramscope.run/3; this one reads vramscope.run/2): pip install -U vramscope",
        ),
        ({"format.json": '{"schema": "other/1"}'}, "its schema is 'other/1', not vramscope.run/2"),
        ({"format.json": "[]"}, "its schema is None"),
        ({"format.json": "{"}, "is no run of vramscope, or was cut off"),
        ({"format.json": '{"schema": "vramscope.run/1"}'}, "it holds no report.json"),
        (
            {"format.json": '{"schema": "vramscope.run/1"}', "report.json": "{}"},
            "its schema is None, not vramscope.rep",
        ),
        ({"format.json": json.dumps(FORM)}, "it holds no journal.jsonl"),
        (
            {"format.json": json.dumps({**FORM, "origin": "dreamt"}), "journal.jsonl": ""},
            "its origin is 'dreamt': it was not",
        ),
        (
            {"format.json": json.dumps({**FORM, "name": 3}), "journal.jsonl": ""},
            "its name is 3, not text: the run is damaged",
        ),
        (
            {"format.json": json.dumps({**FORM, "traces": -1}), "journal.jsonl": ""},
            "its traces is -1, not a whole number from 0",
        ),
        (
            {"format.json": json.dumps({**FORM, "tables": 5000}), "journal.jsonl": ""},
            "it says that it holds 5000 tables",
        ),
        (
            {"format.json": json.dumps({**FORM, "traces": 1}), "journal.jsonl": ""},
            "it holds no traces/0.json",
        ),
    ],
)
def test_foreign_and_newer(tmp_path: Path, parts: dict[str, str], message: str):
    _zip(tmp_path / "a.vram", parts)

    with pytest.raises(RunError, match=re.escape(message)):
        load_run(tmp_path / "a.vram")


def test_a_number_in_the_report_that_no_float_holds(tmp_path: Path):
    report = report_to_dict(trained())
    report["needs_bytes"] = 10**400
    parts = {"format.json": json.dumps(FORM), "journal.jsonl": "", "report.json": json.dumps(report)}
    _zip(tmp_path / "a.vram", parts)

    with pytest.raises(RunError, match=r"its report is 1000.*, not a number of 64 bits: the run is damaged"):
        load_run(tmp_path / "a.vram")


def test_a_file_that_would_fill_the_memory_is_refused(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "a.vram", "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(40):
            file.writestr(f"{number}.npy", bytes(1 << 20))

    assert (tmp_path / "a.vram").stat().st_size < 50_000
    with pytest.raises(RunError, match="it would unpack to 41943040 bytes: it was not written by vramscope"):
        load_run(tmp_path / "a.vram")


def test_a_part_that_is_longer_than_its_directory_says_is_refused(tmp_path: Path):
    """A directory that lies is not believed: only as much is unpacked as it told, and then the sum is wrong."""
    with zipfile.ZipFile(tmp_path / "a.vram", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("format.json", bytes(234_567_891))
    data = (tmp_path / "a.vram").read_bytes()
    told = (234_567_891).to_bytes(4, "little")
    assert data.count(told) == 2
    (tmp_path / "a.vram").write_bytes(data.replace(told, (100).to_bytes(4, "little")))

    tracemalloc.start()
    with pytest.raises(RunError, match="is no run of vramscope, or was cut off"):
        load_run(tmp_path / "a.vram")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10_000_000


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_packing_that_unpacks_without_bounds_is_refused(tmp_path: Path, method: int):
    with zipfile.ZipFile(tmp_path / "a.vram", "w", method) as file:
        file.writestr("format.json", "{}")

    with pytest.raises(RunError, match=re.escape("its format.json is packed in another way")):
        load_run(tmp_path / "a.vram")


def test_a_long_run_may_unpack_to_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is refused as a bomb is far from what a run can be: this one has nothing but zeros in most columns."""
    monkeypatch.setattr(archive, "_ALWAYS_BYTES", 0)
    save_run(tmp_path / "a.vram", million_run(200_000))

    assert load_run(tmp_path / "a.vram").check() == ()


def test_no_such_file(tmp_path: Path):
    with pytest.raises(RunError, match="No such file or directory"):
        load_run(tmp_path / "missing.vram")


def test_a_part_that_is_missing_is_named(tmp_path: Path):
    save_run(tmp_path / "a.vram", RUN)
    with zipfile.ZipFile(tmp_path / "a.vram") as file:
        parts = {name: file.read(name) for name in file.namelist()}
    del parts["traces/0/blocks/freed.npy"]
    _zip(tmp_path / "b.vram", parts)

    with pytest.raises(
        RunError, match=re.escape("b.vram: it holds no traces/0/blocks/freed.npy: it was not")
    ):
        load_run(tmp_path / "b.vram")


def _zip(path: Path, parts: Mapping[str, str | bytes]) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
