"""`vramscope gpus` and `vramscope doctor`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from types import ModuleType

import pytest

from vramscope.cards import all_cards


def test_gpus_has_a_line_for_each_card(vramscope):
    ran = vramscope("gpus")

    head, *lines = ran.out.splitlines()
    assert ran.status == 0
    assert head.split() == ["id", "name", "memory", "capability", "SMs", "unverified"]
    assert [line.split()[0] for line in lines] == [card.id for card in all_cards()]


def test_gpus_are_whole_in_a_narrow_pipe(vramscope, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "20")

    out = vramscope("gpus").out

    assert all(card.name in out for card in all_cards())


def test_gpus_as_json(vramscope):
    cards = json.loads(vramscope("gpus", "--json").out)

    assert [card["id"] for card in cards] == [card.id for card in all_cards()]
    assert set(cards[0]) == {"id", "name", "memory_bytes", "capability", "sms", "unverified"}


@dataclass
class Finding:
    level: str
    what: str
    detail: str = ""
    try_: str = ""


@dataclass
class Diagnosis:
    findings: list[Finding] = field(default_factory=list)


@pytest.fixture
def diagnosed(monkeypatch: pytest.MonkeyPatch):
    """What the floor below finds, as data."""
    module = ModuleType("vramscope.virtual.doctor")

    def given(*findings: Finding) -> None:
        module.diagnose = lambda: Diagnosis(list(findings))  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)

    return given


def test_all_well(vramscope, diagnosed):
    diagnosed(Finding("ok", "torch", "2.14.1+cu130"), Finding("warning", "symbols", "3 lacking", "say so"))

    ran = vramscope("doctor")

    assert ran.status == 0
    assert ran.out == "ok       torch: 2.14.1+cu130\nwarning  symbols: 3 lacking\n         try: say so\n"


def test_an_error_is_status_1(vramscope, diagnosed):
    diagnosed(Finding("error", "compiler", "", "apt install gcc"))

    ran = vramscope("doctor")

    assert ran.status == 1
    assert ran.out == "error    compiler\n         try: apt install gcc\n"


def test_doctor_as_json(vramscope, diagnosed):
    diagnosed(Finding("error", "compiler", "", "apt install gcc"))

    found = json.loads(vramscope("doctor", "--json").out)

    assert found == [{"level": "error", "what": "compiler", "detail": None, "try": "apt install gcc"}]
