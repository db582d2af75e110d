"""Paths in a report: none tells where on a machine the program stood."""

from __future__ import annotations

import pytest

from vramscope.run.journal import journal_of
from vramscope.run.paths import shorter_paths, without_folders


@pytest.mark.parametrize(
    ("words", "shorter"),
    [
        ("/home/ada/job/train.py:41 in main", "train.py:41 in main"),
        ("/home/ada/job/lib/model.py", "lib/model.py"),
        ("/home/ada/jobs/train.py", "/home/ada/jobs/train.py"),
        ("/home/ada/.venv/lib/python3.11/site-packages/timm/layers.py:7", "timm/layers.py:7"),
        ("at /usr/lib/python3/dist-packages/x.py and /a/site-packages/y.py", "at x.py and y.py"),
        ("nonzero", "nonzero"),
    ],
)
def test_shorter(words: str, shorter: str):
    assert shorter_paths(words, "/home/ada/job") == shorter
    assert shorter_paths(words, "/home/ada/job/") == shorter


def test_a_program_in_the_root_folder_keeps_its_slashes():
    assert shorter_paths("/train.py and a/b", "/") == "/train.py and a/b"


def test_all_of_a_journal():
    entry = {"pid": 1, "kind": "x", "argv": ["/job/a.py", "b"], "deep": {"where": "/job/c.py:1"}, "n": 3}

    (found,) = without_folders(journal_of([entry]), "/job").entries

    assert found == {"pid": 1, "kind": "x", "argv": ["a.py", "b"], "deep": {"where": "c.py:1"}, "n": 3}
