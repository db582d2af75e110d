"""What can be assumed is checked before anything starts, without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vramscope.errors import UsageError
from vramscope.recording.values.policy import Policy, keys, parse

PAGE = Path(__file__).parents[2] / "docs" / "values.md"


def test_nothing_set_is_the_default():
    assert parse("") == Policy()


def test_several_settings():
    assert parse("nonzero=0.5; float=2;bool=false,unique=0") == Policy(
        nonzero=0.5, float=2.0, bool=False, unique=0.0
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonzeros=1", "'nonzeros'"),
        ("nonzero=2", "from 0 to 1"),
        ("nonzero=many", "takes a number"),
        ("bool=perhaps", "true or false"),
        ("repeat=-1", "below zero"),
        ("int=1.5", "whole number"),
        ("routing=0.5", "at least 1"),
        ("float", "takes a number"),
    ],
)
def test_nonsense_is_named(text: str, said: str):
    with pytest.raises(UsageError, match=said):
        parse(text)


def test_an_unknown_key_lists_all_keys():
    with pytest.raises(UsageError) as caught:
        parse("typo=1")

    assert all(key in str(caught.value) for key in keys())


def test_every_key_is_documented():
    page = PAGE.read_text()

    assert [key for key in keys() if f"`{key}=" not in page] == []


def test_reading_a_policy_needs_no_torch():
    code = (
        "import sys; from vramscope.recording.values import policy; policy.parse('int=3'); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
