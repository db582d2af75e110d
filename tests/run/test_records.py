"""Values as JSON objects: there and back, and each wrong field named."""

from __future__ import annotations

import json
import re

import pytest

from vramscope.errors import RunError
from vramscope.run.records import to_objects, to_values
from vramscope.run.trace import Frame, Module, Optimizer, Span

VALUES = {
    Span: Span(3, "forward", 1, "built", 2, 5, None, 7),
    Module: Module("Net.a", "Linear", 3, 12, 3, 12, 0, ("requires_grad attribute",)),
    Frame: Frame("train.py", 3, "main", True, "loss.backward()"),
    Optimizer: Optimizer("Adam", 3, None, False, {"lr": 0.1, "betas": (0.9, 0.999), "more": {"a": None}}),
}


@pytest.mark.parametrize("kind", VALUES)
def test_there_and_back(kind: type):
    document = json.loads(json.dumps(to_objects([VALUES[kind]])))

    assert to_values(kind, document, "x") == (VALUES[kind],)


@pytest.mark.parametrize(
    ("kind", "document", "message"),
    [
        (Span, {}, "its x is {}, not list: the run is damaged"),
        (Span, [[]], "its x[0] is [], not object"),
        (Span, [{"phase": "init"}], "its x[0] has no first: the run is damaged"),
        (Span, [{"first": "0", "phase": "init"}], "its x[0].first is '0', not a whole number from 0 to"),
        (Span, [{"first": True, "phase": "init"}], "its x[0].first is True, not a whole number"),
        (Span, [{"first": -1, "phase": "init"}], "its x[0].first is -1, not a whole number"),
        (Span, [{"first": 1 << 63, "phase": "init"}], "its x[0].first is 9223372036854775808, not a whole"),
        (Span, [{"first": 1.0, "phase": "init"}], "its x[0].first is 1.0, not a whole number"),
        (Span, [{"first": 0, "phase": None}], "its x[0].phase is None, not text"),
        (Span, [{"first": 0, "phase": "a", "mark": 3}], "its x[0].mark is 3, not text"),
        (Frame, [{"file": "a", "line": 1, "function": "f", "user": 1}], "its x[0].user is 1, not true or"),
        (Module, [{"path": "a", "notes": "b"}], "its x[0].notes is 'b', not list"),
        (Module, [{"path": "a", "notes": [1]}], "its x[0].notes[0] is 1, not text"),
        (Optimizer, [{"kind": "a", "parameters": 1, "settings": []}], "its x[0].settings is [], not object"),
        (
            Optimizer,
            [{"kind": "a", "parameters": 1, "settings": {"a": [10**30]}}],
            "its x[0].settings is 1000000000000000000000000000000, not a number of 64 bits",
        ),
    ],
)
def test_wrong(kind: type, document: object, message: str):
    with pytest.raises(RunError, match=re.escape(message)):
        to_values(kind, document, "x")


def test_what_no_encoding_knows_becomes_a_question_mark():
    """As in the name of a file that is no UTF-8, which Python tells with surrogates."""
    document = [{"file": "caf\udce9.py", "line": 1, "function": "é", "text": "x"}]

    assert to_values(Frame, document, "x") == (Frame("caf?.py", 1, "é", text="x"),)


def test_fields_of_other_versions():
    """A field that a later version adds is left alone; one that an earlier one had not has its default."""
    assert to_values(Span, [{"first": 0, "phase": "init", "weather": "fine"}], "x") == (Span(0, "init"),)
