"""Imports go down only: a file knows its own floor and those below."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "vramscope"
FLOORS = (
    *("errors", "units", "cards", "run", "virtual", "real", "recording", "analysis", "jobs", "planning", "theory", "lab"),
    *("views", "api", "cli"),
)
"""Lowest first; errors and units share the ground floor."""
FACE = {"__init__", "__main__"}
"""The package's face names what is above it, by name only or lazily."""


def test_every_module_has_a_floor():
    assert {path.stem for path in PACKAGE.iterdir() if _is_python(path)} <= {*FLOORS, *FACE}


def test_imports_go_down_only():
    assert [line for path in sorted(PACKAGE.rglob("*.py")) for line in upward(path)] == []


@pytest.mark.parametrize(
    ("place", "code", "found"),
    [
        ("run/a.py", "from vramscope.views import words", 1),
        ("run/a.py", "def f():\n    import vramscope.cli.console", 1),
        ("run/a.py", "from vramscope import api", 1),
        ("cards/a.py", "from vramscope.run.report import Report", 1),
        ("units.py", "from vramscope import errors", 0),
        ("run/a.py", "from vramscope.cards import Card\nimport vramscope", 0),
        ("cli/a.py", "from vramscope import api, errors\nimport json", 0),
    ],
)
def test_the_check_can_fail(tmp_path: Path, place: str, code: str, found: int):
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text(code)

    assert len(list(upward(path, tmp_path))) == found


def upward(path: Path, package: Path = PACKAGE) -> Iterator[str]:
    """The imports of a file that go up, each as a sentence."""
    own = path.relative_to(package).parts[0].removesuffix(".py")
    if own in FACE:
        return
    for line, name in imported(path):
        if name in FLOORS and _height(name) > _height(own):
            yield f"{path.relative_to(package)}:{line} ({own}) imports {name}, a floor above"


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """The floors that a file imports, with the line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "vramscope" else [module]
            assert node.level == 0, f"{path}:{node.lineno}: a relative import hides its floor"
        for name in names:
            first, *rest = name.split(".")
            if first == "vramscope" and rest:
                yield node.lineno, rest[0]


def _height(name: str) -> int:
    return max(FLOORS.index(name), FLOORS.index("units"))


def _is_python(path: Path) -> bool:
    return path.suffix == ".py" or (path / "__init__.py").is_file()
