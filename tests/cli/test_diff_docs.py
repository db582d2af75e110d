"""The pages about files and differences name what is there."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

from pairs import full, lora
from vramscope.analysis.compare import compare
from vramscope.run.store import save_run
from vramscope.views.compare_json import to_json

DOCS = Path(__file__).parents[2] / "docs"


def rows(page: str, heading: str) -> list[str]:
    """The first cells of the table under a heading, word by word."""
    table = (DOCS / page).read_text(encoding="utf-8").split(heading, 1)[1].split("\n\n##", 1)[0]
    cells = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
    return [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]


def test_fields_of_a_diff():
    assert rows("diff.md", "## `--json`") == list(json.loads(to_json(compare(full(), lora()))))


def test_parts_of_a_file(tmp_path: Path):
    save_run(tmp_path / "a.vram", full())
    with zipfile.ZipFile(tmp_path / "a.vram") as archive:
        names = {re.sub(r"/0(?=[/.])", "/N", name) for name in archive.namelist()}

    told = rows("run-format.md", "| part | what |")
    patterns = [re.escape(name).replace(r"\*", r"\w+") for name in told if "/" in name or "." in name]
    patterns.append(r"tables/N/stack_frames\.npy")
    assert [name for name in names if not any(re.fullmatch(each, name) for each in patterns)] == []
    assert [
        each
        for each in patterns
        if not any(re.fullmatch(each, name) for name in names | {"stack_frames.npy"})
    ] == []
