"""The JSON report: there and back, documented field by field, and clear about what it is not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from builders import REPORTS, trained
from vramscope.errors import RunError
from vramscope.run.schema import field_names
from vramscope.views.report_json import from_json, to_json

DOCUMENTED = Path(__file__).parents[2] / "docs" / "report-schema.md"


@pytest.mark.parametrize("name", REPORTS)
def test_there_and_back(name: str):
    report = REPORTS[name]()

    assert from_json(to_json(report)) == report


def test_the_page_lists_every_field_and_no_other():
    documented = re.findall(r"^\| `([a-z_.\[\]]+)` \|", DOCUMENTED.read_text(encoding="utf-8"), re.MULTILINE)

    assert documented == ["schema", *field_names()]


def test_the_names_are_those_of_the_output():
    """field_names reads types; this holds them against a real document."""
    found = {"schema", *field_names()}

    assert _paths(json.loads(to_json(REPORTS["troubled"]()))) <= found
    assert _paths(json.loads(to_json(REPORTS["out_of_memory"]()))) <= found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"schema": "vramscope.report/2"},
            "newer vramscope (vramscope.report/2; this one reads vramscope.report/1)",
        ),
        ({"schema": "vramscope.report/0"}, "vramscope.report/0 is no longer read"),
        ({"schema": "memray/1"}, "its schema is 'memray/1', not vramscope.report/1"),
        ({"schema": None}, "its schema is None"),
        ({"gpus": "one"}, "gpus is 'one', not int"),
        ({"gpus": True}, "gpus is 'True', not int"),
        ({"peaks": []}, "peaks is '[]', not object"),
        ({"steps": [{}]}, "the report has no steps[0].step"),
        ({"steps": 3}, "steps is '3', not list"),
    ],
)
def test_foreign_newer_damaged(change: dict[str, object], message: str):
    document = {**json.loads(to_json(trained())), **change}

    with pytest.raises(RunError, match=re.escape(message)):
        from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["", "[]", "3", "{", '{"schema": "vramscope.report/1"}', "[" * 100_000])
def test_what_is_no_report(text: str):
    with pytest.raises(RunError):
        from_json(text)


def test_a_truncated_text_is_refused_at_every_length():
    text = to_json(trained()).rstrip()
    for length in range(0, len(text), 97):
        with pytest.raises(RunError):
            from_json(text[:length])


def test_fields_of_a_later_version_are_left_alone():
    document = {**json.loads(to_json(trained())), "more": 1}

    assert from_json(json.dumps(document)) == trained()


def _paths(value: object, prefix: str = "") -> set[str]:
    """Every path in a document; a pair of numbers (capability) is a value, other lists are lists."""
    if isinstance(value, dict):
        return {
            path for key, item in value.items() for path in _paths(item, f"{prefix}.{key}".lstrip("."))
        } | ({prefix} if prefix else set())
    if isinstance(value, list) and not prefix.endswith("capability"):
        return {f"{prefix}[]"}.union(*(_paths(item, f"{prefix}[]") for item in value))
    return {prefix}
