"""Files as an imported run shows them: nothing of the machine that they were on is left."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_PACKAGES = re.compile(r".*/(?:site|dist)-packages/")
_STANDARD = re.compile(r".*/(?:lib(?:64)?/python[0-9][0-9.]*|python[0-9.]*/lib)/", re.IGNORECASE)
_TORCH = re.compile(
    r".*/(torch/(?:_[a-z_]+\.py|(?:nn|optim|autograd|cuda|amp|utils|distributed|fx|_[a-z]+)/).*)"
)
"""A torch that runs from its sources."""
_COMPILED = re.compile(r".*/torchinductor_[^/]*/")
_NO_FILE = re.compile(r"^<.*>$")


@dataclass(frozen=True, slots=True)
class Shown:
    """How a file is shown."""

    name: str
    user: bool
    """It is the program's own."""


def clean(text: str, longest: int = 1000) -> str:
    """A text of a file that may be anything: not endless, and such that it can be written in UTF-8."""
    return text[:longest].encode("utf-8", "replace").decode()


@lru_cache(maxsize=65536)
def library_file(file: str) -> str | None:
    """A library's file within the folder that it is installed in; None for the program's own."""
    path = file.replace("\\", "/")
    if path.startswith("<frozen"):
        return path
    for pattern in (_PACKAGES, _STANDARD):
        found = pattern.match(path)
        if found:
            return path[found.end() :]
    if _COMPILED.match(path):
        return "torchinductor/" + path.rpartition("/")[2]
    found = _TORCH.match(path)
    return found[1] if found else None


def shown_files(files: Iterable[str]) -> dict[str, Shown]:
    """By each file, how it is shown: the program's own ones from their common folder on."""
    of_library = {file: library_file(file) for file in files}
    own = [file for file, library in of_library.items() if library is None]
    names = _from_common_folder(own)
    return {
        file: Shown(names[file], True) if library is None else Shown(library, False)
        for file, library in of_library.items()
    }


def _from_common_folder(files: list[str]) -> dict[str, str]:
    """Without the folders that all have in common; by file and folder alone if that is next to nothing."""
    parts = {file: _parts(file) for file in files}
    folders = [each[:-1] for file, each in parts.items() if _is_absolute(file)]
    common = 0
    if folders:
        while all(len(each) > common and each[common] == folders[0][common] for each in folders):
            common += 1
    skip = common if common >= 2 else None
    return {file: _short(file, each, skip) for file, each in parts.items()}


def _short(file: str, parts: list[str], skip: int | None) -> str:
    if _NO_FILE.match(file) or not parts:
        return file or "?"
    if not _is_absolute(file):
        return "/".join(parts)
    return "/".join(parts[-2:] if skip is None else parts[skip:])


def _parts(file: str) -> list[str]:
    found: list[str] = []
    for part in file.replace("\\", "/").split("/"):
        if part == ".." and found:
            found.pop()
        elif part not in ("", ".", ".."):
            found.append(part)
    return found


def _is_absolute(file: str) -> bool:
    return bool(re.match(r"[/\\]|[A-Za-z]:", file)) and not _NO_FILE.match(file)
