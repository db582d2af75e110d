"""Functions in a fresh process: by name, by value, by their script, by their source."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from vramscope.errors import UsageError
from vramscope.run.function import function_name, write_call

SOURCES = Path(__file__).parents[2] / "src"
SEND = "import sys; sys.modules['cloudpickle'] = None; from pathlib import Path; from vramscope.run.function import write_call; write_call({}, Path({!r}))"


@pytest.fixture(autouse=True)
def _without_cloudpickle(monkeypatch: pytest.MonkeyPatch):
    """Dask brings it; most of what is told here is what happens without."""
    monkeypatch.setitem(sys.modules, "cloudpickle", None)


def python(*words: str, cwd: Path, **environment: str) -> str:
    found = subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SOURCES), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_function_of_a_module_goes_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "jobs_of_mine.py").write_text("import math\ndef job(): print('ran', math.pi)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    from jobs_of_mine import job  # type: ignore[import-not-found]

    script = write_call(job, _folder(tmp_path))

    assert python(str(script), cwd=tmp_path) == "ran 3.141592653589793\n"


def test_a_partial_goes_too(tmp_path: Path):
    script = write_call(functools.partial(print, "hello", 3), _folder(tmp_path))

    assert python(str(script), cwd=tmp_path) == "hello 3\n"


def test_a_scripts_function_goes_by_its_script(tmp_path: Path):
    """As with multiprocessing: the script is run again, under another name."""
    folder = _folder(tmp_path)
    (tmp_path / "mine.py").write_text(
        "SIZE = 5\nclass Job:\n    def __call__(self): print('size', SIZE, __name__)\n"
        f"if __name__ == '__main__':\n    {SEND.format('Job()', str(folder))}\n"
    )
    python("mine.py", cwd=tmp_path)

    assert python(str(folder / "call.py"), cwd=tmp_path) == "size 5 __mp_main__\n"


def test_so_does_one_of_a_module_run_with_m(tmp_path: Path):
    folder = _folder(tmp_path)
    (tmp_path / "mine.py").write_text(
        f"def job(): print(__name__)\nif __name__ == '__main__':\n    {SEND.format('job', str(folder))}\n"
    )
    python("-m", "mine", cwd=tmp_path, PYTHONPATH=f"{SOURCES}:{tmp_path}")

    assert python(str(folder / "call.py"), cwd=tmp_path, PYTHONPATH=str(tmp_path)) == "__mp_main__\n"


NOTEBOOK = """
import math as m
from pathlib import PurePosixPath
SIZES = {"batch": 8}
def double(n):
    return 2 * n if n < 100 else half(n)
def half(n):
    return double(n // 2)
def job(times=SIZES["batch"]):
    class Local: pass
    print(double(times), m.floor(2.5), PurePosixPath("a") / "b", SIZES)
"""


def test_a_notebooks_function_goes_by_its_source(tmp_path: Path, notebook):
    notebook(NOTEBOOK)
    script = write_call(sys.modules["__main__"].job, _folder(tmp_path))

    assert python(str(script), cwd=tmp_path) == "16 2 a/b {'batch': 8}\n"


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("job = lambda: 3", "it is a lambda or uses variables of an outer function"),
        (
            "def make():\n    n = 3\n    def job(): return n\n    return job\njob = make()",
            "variables of an outer function",
        ),
        (
            "lock = __import__('threading').Lock()\ndef job(): return lock",
            "lock cannot be sent to a fresh process: it cannot",
        ),
        (
            "class A: pass\na = A()\ndef job(): return a",
            "a cannot be sent to a fresh process: it is an object of this",
        ),
        ("class A:\n    def __call__(self): pass\njob = A()", "it is no plain function"),
    ],
)
def test_what_cannot_be_sent(tmp_path: Path, notebook, cell: str, why: str):
    notebook(cell)

    with pytest.raises(UsageError, match=re.escape(why)) as raised:
        write_call(sys.modules["__main__"].job, tmp_path)
    assert "pip install cloudpickle, or put the function into a module" in str(raised.value)


def test_code_without_source_cannot_be_sent(tmp_path: Path, notebook):
    notebook("exec('def job(): return 3')")

    with pytest.raises(UsageError, match="its source is not to be had"):
        write_call(sys.modules["__main__"].job, tmp_path)


def test_cloudpickle_comes_first_where_it_is_installed(
    tmp_path: Path, notebook, monkeypatch: pytest.MonkeyPatch
):
    import pickle

    notebook("job = lambda: 3")
    stand_in = types.ModuleType("cloudpickle")
    stand_in.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]
    stand_in.dumps = lambda _function: pickle.dumps(functools.partial(print, "by value"))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cloudpickle", stand_in)

    script = write_call(sys.modules["__main__"].job, _folder(tmp_path))

    assert python(str(script), cwd=tmp_path) == "by value\n"


def test_what_cloudpickle_cannot_send(tmp_path: Path, notebook, monkeypatch: pytest.MonkeyPatch):
    notebook("job = lambda: 3")
    stand_in = types.ModuleType("cloudpickle")
    stand_in.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "cloudpickle", stand_in)

    with pytest.raises(UsageError, match="make what it needs inside it"):
        write_call(sys.modules["__main__"].job, tmp_path)


def test_what_is_no_function(tmp_path: Path):
    with pytest.raises(UsageError, match="takes a path or a function of no arguments, not 3"):
        write_call(3, tmp_path)  # type: ignore[arg-type]


def test_names():
    assert function_name(_folder) == "_folder"
    assert function_name(functools.partial(print)) == "partial"


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "call"
    folder.mkdir()
    return folder


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch):
    """Runs a cell as IPython does: in a `__main__` without a file, its source in linecache."""
    import linecache

    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)

    def run(cell: str) -> None:
        name = "<cell>"
        linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
        exec(compile(cell, name, "exec"), vars(main))

    return run
