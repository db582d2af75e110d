"""What a program reads beside its own text, as a hash: so that a changed config is another cell."""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from vramscope.jobs.source import FUNCTION, Source

_CONFIGS = ("config.json", "unet/config.json", "transformer/config.json")


def fingerprint(source: Source) -> str:
    """Of a local folder's config, or of a function's module and those beside it that it imports; "" for others."""
    files = module_files(source) if source.library == FUNCTION else _configs(source.folder)
    if not files:
        return ""
    told = hashlib.sha256()
    for file in files:
        told.update(file.read_bytes() + b"\0")
    return told.hexdigest()


def module_files(source: Source) -> list[Path]:
    """The files of a function's module and of the modules that it imports from the same tree, in a fixed order."""
    module = source.name.partition(":")[0]
    for root in (os.getcwd(), *sys.path):  # noqa: PTH109  (as Python itself looks)
        if found := _file(Path(root).absolute(), module):
            return sorted(_reached(Path(root).absolute(), found, set()))
    return []


def _configs(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    return [folder / name for name in _CONFIGS if (folder / name).is_file()]


def _reached(root: Path, file: Path, seen: set[Path]) -> set[Path]:
    """The file and what it imports under the root; those of `seen` are done."""
    if file in seen:
        return seen
    seen.add(file)
    for name in imported(file, file.parent.relative_to(root).parts):
        if found := _file(root, name):
            _reached(root, found, seen)
    return seen


def _file(root: Path, module: str) -> Path | None:
    base = root.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def imported(file: Path, package: Sequence[str] = ()) -> Iterator[str]:
    """The modules that a file of a package imports, by their full names; none of a file that is no Python."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (SyntaxError, ValueError):
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _named(node, package)


def _named(node: ast.ImportFrom, package: Sequence[str]) -> Iterator[str]:
    """What a ``from … import …`` may name: the module, and each name as one of its modules."""
    above = package[: len(package) - node.level + 1] if node.level else ()
    module = ".".join((*above, *([node.module] if node.module else [])))
    yield from filter(None, (module, *(".".join(filter(None, (module, each.name))) for each in node.names)))
