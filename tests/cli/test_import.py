"""`vramscope import` and `vramscope export`, as commands."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from histories import BASE, event, snapshot
from traces import training_story
from vramscope.run.store import load_run, save_run
from vramscope.views.snapshot import snapshot_pickle

ENDINGS = ("html", "json", "csv", "pickle", "trace.json")


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save_run(tmp_path / "train.vram", training_story().run())
    (tmp_path / "dump.pickle").write_bytes(snapshot_pickle(training_story().run()))
    return tmp_path


def test_import(vramscope, saved: Path):
    ran = vramscope("import", "dump.pickle", "-o", "dump.vram")

    assert (ran.status, ran.err) == (0, "")
    assert "dump.pickle (imported): allocated" in ran.out
    assert "114 events, 2 steps" in ran.out
    assert load_run(saved / "dump.vram").name == "dump.pickle"


@pytest.mark.parametrize(
    "view", [(), ("--stages",), ("--layers",), ("--peak",), ("--lines",), ("--timeline",), ("--json",)]
)
def test_an_imported_run_is_shown(vramscope, saved: Path, view: tuple[str, ...]):
    vramscope("import", "dump.pickle", "-o", "dump.vram")

    ran = vramscope("show", "dump.vram", *view)

    assert (ran.status, ran.err) == (0, "")
    assert ran.out


def test_an_import_says_where_to_save(vramscope, saved: Path):
    ran = vramscope("import", "dump.pickle")

    assert ran.status == 2
    assert "Missing option '-o'" in ran.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no pickle", "dump.pickle is no snapshot of torch, or is damaged: it does not begin like a pickle"),
        (pickle.dumps([print], 4), "it holds more than numbers, texts, lists and dicts"),
        (
            pickle.dumps({"a": 1}, 4),
            "dump.pickle cannot be imported: it has neither segments nor device_traces",
        ),
    ],
)
def test_what_is_no_snapshot_is_refused(vramscope, saved: Path, content: bytes, words: str):
    (saved / "dump.pickle").write_bytes(content)

    ran = vramscope("import", "dump.pickle", "-o", "dump.vram")

    assert ran.status == 2
    assert words in ran.err
    assert not (saved / "dump.vram").exists()


def test_an_import_of_nothing(vramscope, saved: Path):
    (saved / "dump.pickle").write_bytes(pickle.dumps(snapshot(), 4))

    ran = vramscope("import", "dump.pickle", "-o", "dump.vram")

    assert ran.status == 0
    assert load_run(saved / "dump.vram").traces == ()


@pytest.mark.parametrize("ending", ENDINGS)
def test_export(vramscope, saved: Path, ending: str):
    target = saved / f"train.{ending}"
    target.write_text("what was there before")

    ran = vramscope("export", "train.vram", target.name)

    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert target.read_bytes()[:4] == {
        "html": b"<!do",
        "pickle": b"\x80\x04\x95" + target.read_bytes()[3:4],
    }.get(ending, {"json": b'{"sc', "csv": b"proc", "trace.json": b'{"di'}.get(ending))
    assert [path.name for path in saved.iterdir() if path.name.startswith(".")] == []


def test_an_export_can_be_imported_again(vramscope, saved: Path):
    assert vramscope("export", "train.vram", "again.pickle").status == 0
    assert vramscope("import", "again.pickle", "-o", "again.vram").status == 0
    assert vramscope("export", "again.vram", "again.JSON").status == 0

    assert json.loads((saved / "again.JSON").read_text())["origin"] == "imported"


@pytest.mark.parametrize("file", ["train.txt", "train", "html", "train.pickle.gz"])
def test_an_ending_that_names_nothing(vramscope, saved: Path, file: str):
    ran = vramscope("export", "train.vram", file)

    assert ran.status == 2
    assert (
        f"the ending of {file} names no kind of file: use one of .html, .trace.json, .json, .csv, .pickle"
        in ran.err
    )


@pytest.mark.parametrize(("file", "why"), [("none/a.csv", "No such file"), ("folder.csv", "Is a directory")])
def test_a_place_that_cannot_be_written(vramscope, saved: Path, file: str, why: str):
    (saved / "folder.csv").mkdir()

    ran = vramscope("export", "train.vram", file)

    assert ran.status == 2
    assert f"cannot write {file}: {why}" in ran.err
    assert "choose another place" in ran.err


def test_a_run_that_is_none(vramscope, saved: Path):
    ran = vramscope("export", "dump.pickle", "a.csv")

    assert ran.status == 2
    assert "dump.pickle" in ran.err
    assert not (saved / "a.csv").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("import", "dump.pickle", "-o", "dump.vram"),
        *(("export", "train.vram", f"a.{ending}") for ending in ENDINGS),
    ],
)
def test_torch_is_not_needed(saved: Path, words: tuple[str, ...]):
    code = (
        "import sys; from vramscope.cli import status_of; "
        f"status = status_of({list(words)!r}); assert 'torch' not in sys.modules; sys.exit(status)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=saved, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


def test_a_snapshot_of_events_alone(vramscope, saved: Path):
    (saved / "dump.pickle").write_bytes(pickle.dumps(snapshot(event("alloc", BASE, 100)), 2))

    assert vramscope("import", "dump.pickle", "-o", "dump.vram").status == 0
