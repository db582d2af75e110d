"""Whatever a file holds, reading it ends in a run of which everything can be asked, or in a RunError.

bench/fuzz.py does the same ten thousand times."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everything import ask_everything
from mutants import mutant, originals
from same import assert_same
from strategies import runs
from vramscope.errors import RunError
from vramscope.run.run import Run
from vramscope.run.store import load_run, save_run

CODE = {
    "exec",
    "compile",
    "import",
    "pickle.find_class",
    "os.system",
    "os.exec",
    "subprocess.Popen",
    "ctypes.dlopen",
}
_watched: list[str] | None = None


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _watched is None or event not in CODE:
        return
    told = f"{event} {arguments[:1]}"
    if "encodings" not in told:  # Python's own codecs, which json and zipfile ask for by name
        _watched.append(told)


sys.addaudithook(_note)


@contextmanager
def no_code() -> Iterator[None]:
    """Nothing is imported, compiled, unpickled or started within."""
    global _watched
    _watched = events = []
    try:
        yield
    finally:
        _watched = None
    assert events == []


def read(path: Path) -> Run | None:
    """The run in a file, None if it is refused; nothing else may happen."""
    try:
        with no_code():
            return load_run(path)
    except RunError:
        return None


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The modules that reading needs are there before it is watched."""
    for data in originals():
        path = tmp_path_factory.mktemp("warm") / "a.vram"
        path.write_bytes(data)
        run = load_run(path)
        ask_everything(run)
        assert run.check() == ()


@pytest.mark.parametrize("block", range(10))
def test_mutants(tmp_path: Path, block: int):
    for seed in range(block * 40, block * 40 + 40):
        (tmp_path / "a.vram").write_bytes(mutant(seed))
        run = read(tmp_path / "a.vram")
        if run is not None:
            ask_everything(run)


@settings(max_examples=100, deadline=5000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=400))
def test_any_bytes(tmp_path: Path, data: bytes):
    (tmp_path / "a.vram").write_bytes(data)

    assert read(tmp_path / "a.vram") is None


@settings(max_examples=100, deadline=5000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_bytes_within_a_file(tmp_path: Path, data: st.DataObject):
    """Hypothesis finds the smallest change that is wrong."""
    original = data.draw(st.sampled_from(originals()))
    place = data.draw(st.integers(0, len(original)))
    length = data.draw(st.integers(0, 20))
    (tmp_path / "a.vram").write_bytes(
        original[:place] + data.draw(st.binary(max_size=20)) + original[place + length :]
    )

    run = read(tmp_path / "a.vram")
    if run is not None:
        ask_everything(run)


@settings(
    max_examples=100,
    deadline=5000,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(run=runs())
def test_any_sound_run(tmp_path: Path, run: Run):
    """It comes back from its file as it was, and everything can be asked of it."""
    save_run(tmp_path / "a.vram", run)

    assert_same(load_run(tmp_path / "a.vram"), run)
    ask_everything(run)


def test_some_mutants_are_runs_and_most_are_not(tmp_path: Path):
    """The mutants are neither all harmless nor all hopeless, so both ways are tried."""
    found = 0
    for seed in range(100):
        (tmp_path / "a.vram").write_bytes(mutant(seed))
        found += read(tmp_path / "a.vram") is not None

    assert 10 < found < 60


def test_the_watch_sees_code():
    with pytest.raises(AssertionError), no_code():
        exec("pass")
