"""plan/store.py and plan/kept.py: finished cells in a file."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tiny_cells import tiny_cell
from vramscope.errors import RunError
from vramscope.planning import kept, store, versions
from vramscope.planning.result import DOES_NOT_FIT, FAILED, FITS, Failure, Outcome, Result
from vramscope.planning.store import Store

CELL = tiny_cell()
OUTCOME = Outcome(
    Result(
        DOES_NOT_FIT,
        12 << 30,
        peak_allocated_bytes=5,
        categories={"activation": 5},
        failure=Failure("forward", 1, None, 7, "tiny.py:4"),
        notes=("assumed: 1.0",),
        seconds=0.25,
    ),
    b"run",
    None,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "plan.db"


def test_what_was_put_is_there_again_after_closing(path: Path):
    with Store(path) as first:
        assert first.get(CELL) is None
        assert not first.knows(CELL)
        first.put(CELL, OUTCOME)
    with Store(path) as second:
        assert second.get(CELL) == OUTCOME
        assert second.knows(CELL)
        assert second.get(replace(CELL, used_bytes=1)) is None


def test_without_a_file_it_lives_as_long_as_the_process():
    with Store() as kept_here:
        kept_here.put(CELL, OUTCOME)
        assert kept_here.get(CELL) == OUTCOME
    with Store() as another:
        assert len(another) == 0


def test_what_another_version_of_a_library_found_is_not_ours(path: Path, monkeypatch: pytest.MonkeyPatch):
    with Store(path) as older:
        older.put(CELL, OUTCOME)
    monkeypatch.setattr(store, "versions_here", lambda: {"torch": "9.9"})
    with Store(path) as newer:
        assert newer.get(CELL) is None
        newer.put(CELL, OUTCOME)
        assert len(newer) == 2


def test_versions_are_read_without_importing_the_libraries():
    code = (
        "import sys; from vramscope.planning.versions import versions_here; found = versions_here();"
        "assert {'torch', 'cudnn', 'timm'} <= set(found), found;"
        "assert not {'torch', 'timm'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_versions_of_a_python_without_torch_have_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("vramscope.virtual.wheel.importlib.util.find_spec", lambda name: None)

    assert "torch" not in versions.versions_here()


def test_what_might_come_out_otherwise_is_not_kept(path: Path):
    killed = Outcome(Result(FAILED, 1, "killed"), lasting=False)
    with Store(path) as ours:
        ours.put(CELL, killed)
        assert ours.get(CELL) is None


def test_the_checks_know_every_field_of_a_result():
    assert set(kept._FIELDS) == {each.name for each in fields(Result)}
    assert set(kept._FAILURE) == {each.name for each in fields(Failure)}


def _write_text(path: Path) -> None:
    path.write_text("not a database, but long enough to be taken for the head of one" * 20)


def _write_other_database(path: Path) -> None:
    sqlite3.connect(path).execute("CREATE TABLE cells (key TEXT)").connection.close()


def _write_claimed_database(path: Path) -> None:
    sqlite3.connect(path).execute("PRAGMA application_id = 7").connection.close()


def _write_later_version(path: Path) -> None:
    Store(path).close()
    sqlite3.connect(path).execute("PRAGMA user_version = 99").connection.close()


def _add_trigger(path: Path) -> None:
    Store(path).close()
    trigger = "CREATE TRIGGER t AFTER INSERT ON cells BEGIN DELETE FROM cells; END"
    sqlite3.connect(path).execute(trigger).connection.close()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_write_text, "is no plan of vramscope"),
        (_write_other_database, "of another kind"),
        (_write_claimed_database, "of another kind"),
        (_write_later_version, "of another version of vramscope"),
        (_add_trigger, "other tables than vramscope makes"),
        (lambda path: path.mkdir(), "unable to open"),
    ],
)
def test_a_file_that_is_no_plan_is_refused_and_left_as_it_is(path: Path, spoil, said: str):
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""

    with pytest.raises(RunError, match=said):
        Store(path)

    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_folder_that_there_is_not_is_named(tmp_path: Path):
    with pytest.raises(RunError, match=r"there is no folder .*nowhere"):
        Store(tmp_path / "nowhere" / "plan.db")


@pytest.mark.parametrize(
    ("pragma", "said"),
    [
        ("max_page_count = 6", "database or disk is full"),
        ("query_only = 1", "attempt to write a readonly database"),
    ],
)
def test_a_disk_that_takes_nothing_is_an_error_that_names_the_file(path: Path, pragma: str, said: str):
    with Store(path) as full:
        full._file.row(f"PRAGMA {pragma}")
        with pytest.raises(RunError, match=f"cannot keep results in .*plan.db: {said}"):
            full.put(CELL, replace(OUTCOME, run=bytes(1 << 16)))
        assert len(full) == 0


def _tell(path: Path, **changed: object) -> None:
    """Writes a row as somebody would who knows how the digest is made."""
    row = kept.row_of(OUTCOME)
    told = json.loads(row[0]) | changed if changed else row[0]
    text = told if isinstance(told, str) else json.dumps(told)
    digest = kept._digest(text, row[1], row[2])
    with Store(path) as ours:
        ours._file.row(
            "INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?)",
            *(CELL.key, ours._versions, text, row[1], row[2], digest),
        )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("verdict", "perhaps"),
        ("capacity_bytes", "12"),
        ("capacity_bytes", 1 << 80),
        ("peak_allocated_bytes", -1),
        ("peak_allocated_bytes", True),
        ("categories", ["activation"]),
        ("categories", {"activation": 0.5}),
        ("failure", {"phase": "forward"}),
        ("failure", [1]),
        ("notes", "one"),
        ("seconds", float("nan")),
        ("__class__", "os.system"),
    ],
)
def test_a_row_whose_figures_cannot_be_is_refused(path: Path, field: str, value: object):
    _tell(path, **{field: value})

    with (
        Store(path) as ours,
        pytest.raises(RunError, match=f"row of cell {CELL.key[:12]} cannot be used: .*{field}"),
    ):
        ours.get(CELL)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE cells SET result = replace(result, '5', '6')", "changed after it was written"),
        ("UPDATE cells SET run = x'00'", "changed after it was written"),
        ("UPDATE cells SET run = 'text'", "no bytes"),
        ("UPDATE cells SET result = x'ff'", "no text"),
        ("UPDATE cells SET result = CAST(x'ff' AS TEXT)", "UTF-8"),
    ],
)
def test_a_row_that_was_changed_is_refused(path: Path, statement: str, said: str):
    _tell(path)
    with Store(path) as ours:
        assert ours.get(CELL) == OUTCOME
    sqlite3.connect(path, isolation_level=None).execute(statement).connection.close()

    with Store(path) as ours, pytest.raises(RunError, match=said):
        ours.get(CELL)


@pytest.mark.parametrize("told", ["[" * 100_000, "[1]", "{", " " * (2 << 20)])
def test_a_row_that_is_no_object_is_refused(told: str):
    with pytest.raises(RunError):
        kept.outcome_from((told, None, None, kept._digest(told, None, None)))


_WRITER = """
import sys
from dataclasses import replace
from vramscope.planning.result import Outcome, Result
from vramscope.planning.store import Store
from tiny_cells import tiny_cell
with Store(sys.argv[1]) as ours:
    for number in range(20):
        cell = tiny_cell(number * 2 + int(sys.argv[2]))
        ours.put(cell, Outcome(Result("fits", number), bytes(5000)))
        assert ours.get(cell).result.capacity_bytes == number
"""


def test_two_processes_and_their_threads_share_a_file_and_lose_no_row(path: Path):
    tests = str(Path(__file__).parents[1])
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), number], env={"PYTHONPATH": tests})
        for number in ("0", "1")
    ]
    with Store(path) as ours:
        puts = [lambda n=n: ours.put(tiny_cell(100 + n), Outcome(Result(FITS, n))) for n in range(4)]
        threads = [threading.Thread(target=put) for put in puts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [writer.wait() for writer in writers] == [0, 0]
        assert len(ours) == 44
