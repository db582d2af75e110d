"""Every command of the pages exists, with the options that are given to it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from vramscope.cli import group

PAGES = (
    "predict",
    "plan",
    "workloads",
    "formula",
    "lab-stages",
    "lab-train",
    "diff",
    "run-format",
    "show",
    "explain",
    "export",
    "import",
    "gpus",
    "doctor",
    "report-schema",
)
DOCS = Path(__file__).parents[2] / "docs"


def commands(page: str) -> list[str]:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.mark.parametrize("command", [command for page in PAGES for command in commands(page)])
def test_command(command: str):
    program, *words = shlex.split(command)

    found: click.Command | None = group
    while isinstance(found, click.Group):
        verb, *words = words
        found = found.get_command(click.Context(found), verb)
    assert program == "vramscope"
    assert found is not None
    found.make_context(found.name, words)


def test_every_page_has_some():
    assert all(commands(page) for page in PAGES)


def test_a_wrong_option_is_found():
    found = group.get_command(click.Context(group), "predict")

    assert found is not None
    with pytest.raises(click.NoSuchOption):
        found.make_context("predict", ["--gpuz", "t4", "train.py"])
