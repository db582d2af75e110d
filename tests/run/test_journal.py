"""Reading a journal: what is whole is kept, what is not is counted, nothing raises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import OUTSIDE, ACard, training
from vramscope.run.collect import build_report
from vramscope.run.journal import Journal, integer, journal_of, objects, read_journal, text, write_journal
from vramscope.run.schema import report_from_dict, report_to_dict

KINDS = [
    "process",
    "torch",
    "span",
    "step",
    "oom",
    "assumed",
    "unsimulated",
    "uncounted",
    "modelled",
    "waiting",
    "end",
]
KEYS = [
    *("step", "phase", "devices", "device", "peak_allocated_bytes", "peak_reserved_bytes", "peak_used_bytes"),
    *(
        "requested_bytes",
        "used_bytes",
        "what",
        "where",
        "count",
        "value",
        "how",
        "steps",
        "library",
        "symbol",
    ),
    *("bytes", "note", "argv", "python", "main", "torch", "answer", "line"),
]
_scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
)
_entries = st.builds(
    lambda kind, pid, fields: {"pid": pid, "kind": kind, **fields},
    st.sampled_from(KINDS),
    st.integers(1, 3),
    st.dictionaries(st.sampled_from(KEYS), _values, max_size=8),
)


def test_what_is_written_is_read():
    journal = journal_of(training())

    assert read_journal(write_journal(journal)) == journal


def test_a_torn_last_line_costs_itself_alone():
    data = write_journal(journal_of(training()))

    journal = read_journal(data[:-5])

    assert journal.torn
    assert journal.damaged == 0
    assert len(journal.entries) == len(training()) - 1


def test_a_last_line_that_lacks_only_its_end_is_whole():
    data = write_journal(journal_of(training()))

    assert read_journal(data[:-1]) == read_journal(data)


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"[]",
        b"3",
        b"{}",
        b'{"pid": 1}',
        b'{"pid": "1", "kind": "end"}',
        b'{"pid": -1, "kind": "end"}',
        b'{"pid": true, "kind": "end"}',
        b'{"pid": 1, "kind": ""}',
        b"\xff\xfe",
        b"[" * 100_000,
        b"1" * 10_000,
    ],
)
def test_foreign_lines_are_counted(line: bytes):
    good = b'{"pid": 1, "kind": "end"}\n'

    journal = read_journal(good + line + b"\n" + good)

    assert journal == Journal(({"pid": 1, "kind": "end"},) * 2, damaged=1)


def test_empty_lines_are_nothing():
    assert read_journal(b"\n\n") == Journal()


@given(st.binary())
def test_any_bytes(data: bytes):
    journal = read_journal(data)

    assert read_journal(write_journal(journal)).entries == journal.entries


@given(st.lists(_entries, max_size=12), st.integers(-15, 15))
def test_any_entries_make_a_report_that_can_be_saved(entries: list[dict[str, object]], status: int):
    report = build_report(
        journal_of(entries),
        ACard(),
        program=("train.py",),
        gpus=1,
        capacity_bytes=None,
        outside=OUTSIDE,
        status=status,
    )

    assert report_from_dict(json.loads(json.dumps(report_to_dict(report)))) == report


def test_fields_of_another_type_are_not_known():
    entry = {"pid": 1, "kind": "x", "a": True, "b": -1, "c": 2.5, "d": "7", "e": [1, {"f": 0}], "g": ""}

    assert [integer(entry, key) for key in "abcdx"] == [None] * 5
    assert [text(entry, key) for key in "aegx"] == [None] * 4
    assert objects(entry, "e") == [{"f": 0}]
    assert objects(entry, "d") == []
    assert integer({"pid": 1, "kind": "x", "zero": 0}, "zero") == 0
