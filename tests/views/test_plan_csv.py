"""A plan as a table for spreadsheets."""

from __future__ import annotations

import csv
import io

import pytest
from plan_shapes import HOSTILE, SHAPES, hostile, six, twelve, unfollowed

from vramscope.planning.plan import Plan
from vramscope.run.categories import CATEGORIES
from vramscope.views.plan_csv import AFTER, BEFORE, plan_csv


def lines(plan: Plan) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(plan_csv(plan))))


@pytest.mark.parametrize("name", SHAPES)
def test_a_line_for_each_row_under_headings_that_stay(name: str):
    plan = SHAPES[name]()
    table = list(csv.reader(io.StringIO(plan_csv(plan))))

    assert tuple(table[0]) == (*BEFORE, *plan.varied, *AFTER)
    assert [int(line[0]) for line in table[1:]] == [row.number for row in plan.rows]
    assert {len(line) for line in table} == {len(table[0])}


def test_figures_come_back_to_the_byte():
    plan = six()
    for line, row in zip(lines(plan), plan.rows, strict=True):
        found = row.result
        assert int(line["process_total_bytes"]) == found.process_total_bytes
        assert int(line["peak_reserved_bytes"]) == found.peak_reserved_bytes
        assert sum(int(line[f"{each}_bytes"]) for each in CATEGORIES) == found.peak_allocated_bytes
        assert (line["precision"], line["tune"]) == tuple(row.turned.values())
        assert line["verdict"] == found.verdict


def test_changes_are_against_the_baseline_of_the_same_card():
    plan = twelve()
    first = {row.card: row.result.process_total_bytes for row in plan.rows if row.baseline}

    for line, row in zip(lines(plan), plan.rows, strict=True):
        total = row.result.process_total_bytes
        told = line["process_total_change_bytes"]
        assert told == ("" if row.baseline or total is None else str(total - (first[row.card] or 0)))


def test_what_does_not_fit_names_the_request_that_failed():
    line = lines(twelve())[0]

    assert (line["failed_phase"], line["failed_step"]) == ("forward", "1")
    assert line["requested_bytes"] == str(230 << 20)


def test_what_is_not_known_is_empty_and_never_zero():
    bare, none = lines(unfollowed())

    assert (bare["activation_bytes"], bare["parameters"], bare["peak_phase"]) == ("", "", "")
    assert (none["process_total_bytes"], none["peak_allocated_bytes"]) == ("", "")
    assert lines(six())[0]["kv_cache_bytes"] == "0"


def test_texts_with_line_ends_stay_in_their_cells():
    assert lines(hostile())[2]["why"] == HOSTILE
