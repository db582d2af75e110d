"""A plan as JSON: all of it, as documented."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from plan_shapes import SHAPES, budget, fit, twelve

from vramscope.planning.plan import Budget, Candidate, Cheapest, Fit, Plan, Row, Way
from vramscope.planning.result import Failure, Result, result_from
from vramscope.views.plan_json import PLAN_SCHEMA, plan_json

PAGE = Path(__file__).parents[2] / "docs" / "plan.md"


@pytest.mark.parametrize("name", SHAPES)
def test_all_of_a_plan_is_there(name: str):
    plan = SHAPES[name]()
    told = json.loads(plan_json(plan))

    assert told["schema"] == PLAN_SCHEMA
    assert list(told) == ["schema", *(each.name for each in fields(Plan))]
    assert [result_from(row["result"]) for row in told["rows"]] == [row.result for row in plan.rows]
    assert [row["turned"] for row in told["rows"]] == [row.turned for row in plan.rows]


def test_searches_come_back():
    told = json.loads(plan_json(fit()))["fits"][0]
    ways = json.loads(plan_json(budget()))["budget"]["ways"]

    assert (told["largest"], told["fails_at"], told["multiple_of"]) == (176, 184, 8)
    assert result_from(told["fails"]) == fit().fits[0].fails
    assert [way["maths"] for way in ways] == [0, 2, 3]


def test_sizes_are_whole_numbers_and_what_is_not_known_is_null():
    rows = json.loads(plan_json(twelve()))["rows"]
    sizes = [value for row in rows for name, value in row["result"].items() if name.endswith("_bytes")]

    assert {type(size) for size in sizes} == {int, type(None)}
    assert rows[8]["result"]["process_total_bytes"] is None


@pytest.mark.parametrize("part", [Plan, Row, Result, Failure, Fit, Cheapest, Candidate, Budget, Way])
def test_every_field_is_documented(part: type):
    table = PAGE.read_text(encoding="utf-8").split("## `--json`", 1)[1]
    told = set(re.findall(r"`([\w/.]+)`", table))

    assert {each.name for each in fields(part)} - told == set()
