"""The answers of `explain` for the terminal."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from goldens import assert_golden
from rich.cells import cell_len

import builders
from pairs import trained_story
from traces import Story, training_story
from vramscope.analysis.explain import cannot_tell, explain
from vramscope.analysis.explain.finding import (
    ALLOCATED,
    ANOTHER_RUN,
    ESTIMATE,
    PUZZLE,
    RECORDED,
    RESERVED,
    UNTRIED,
    WASTE,
    WRONG,
    Evidence,
    Finding,
    Remedy,
)
from vramscope.run.run import Run
from vramscope.views.explain_json import explain_json
from vramscope.views.explain_text import explain_text
from vramscope.views.paragraphs import TextOptions

MIB = 1 << 20


def snapshot() -> Run:
    story = Story().span("other")
    story.alloc(30 * MIB, "unknown", line=3)
    story.free(story.alloc(20 * MIB, "unknown", line=4))
    return story.run()


def leaking() -> Run:
    story = Story()
    for step in range(1, 8):
        story.span("forward", step)
        story.alloc(200 * MIB, "activation", line=20)
        passing = story.alloc(4 * MIB, "activation", line=30)
        story.span("optimizer_step", step)
        story.free(passing)
    return Run(builders.trained(), traces=(story.trace(),))


RUNS = {
    "trained": lambda: Run(builders.trained(), traces=(training_story().trace(),)),
    "transformer": lambda: Run(builders.trained(), traces=(trained_story().trace(),)),
    "leaking": leaking,
    "out_of_memory": lambda: Run(builders.out_of_memory(), traces=(training_story().trace(),)),
    "report_alone": lambda: Run(builders.on_two_cards()),
    "snapshot": snapshot,
    "empty": lambda: Run(None),
}


def shown(run: Run, options: TextOptions) -> str:
    return explain_text(explain(run), cannot_tell(run), options).plain


@pytest.mark.parametrize("width", [56, 100])
@pytest.mark.parametrize("name", RUNS)
def test_golden(name: str, width: int):
    text = shown(RUNS[name](), TextOptions(width))

    assert_golden(f"explain_{name}_{width}", text)


@pytest.mark.parametrize("width", [50, 66, 80, 100, 200])
@pytest.mark.parametrize("name", RUNS)
def test_no_line_is_wider_than_the_terminal(name: str, width: int):
    lines = shown(RUNS[name](), TextOptions(width)).splitlines()

    assert max(map(cell_len, lines)) <= width


@pytest.mark.parametrize("name", RUNS)
def test_a_terminal_that_knows_ascii_only(name: str):
    assert shown(RUNS[name](), TextOptions(ascii_only=True)).isascii()


def a_finding(severity: str = PUZZLE, *remedies: Remedy) -> Finding:
    return Finding("key", "Why?", "Because.", 0, severity, remedies=remedies)


@pytest.mark.parametrize(
    ("remedy", "words"),
    [
        (Remedy("do", 90 * MIB, RECORDED), "→ do: −90.0 MiB (from the recorded bytes)"),
        (Remedy("do", 90 * MIB, ESTIMATE, at_least=True), "→ do: at least −90.0 MiB (estimate)"),
        (Remedy("do", -MIB, RECORDED), "→ do: +1.00 MiB (from the recorded bytes)"),
        (Remedy("do", 0, RECORDED), "→ do: peak allocated stays as it is (from the recorded bytes)"),
        (
            Remedy("do", MIB, ANOTHER_RUN, of=RESERVED),
            "→ do: −1.00 MiB of peak reserved (another run shows it)",
        ),
        (
            Remedy("do", None, UNTRIED, of=RESERVED),
            "→ do: not known until a run with it is given (--with RUN)",
        ),
        (Remedy("do", MIB, RECORDED, "so it is"), "→ do: −1.00 MiB (from the recorded bytes); so it is"),
    ],
)
def test_what_a_change_saves(remedy: Remedy, words: str):
    assert (
        explain_text([a_finding(PUZZLE, remedy)], (), TextOptions()).plain.splitlines()[-1].strip() == words
    )


@pytest.mark.parametrize(
    ("severity", "line", "style"),
    [
        (PUZZLE, "  Why?", "bold"),
        (WASTE, "  could be less: Why?", "bold yellow"),
        (WRONG, "  looks wrong: Why?", "bold red"),
    ],
)
def test_how_serious_it_is_shows_without_colours_too(severity: str, line: str, style: str):
    text = explain_text([a_finding(severity)], (), TextOptions())

    assert text.plain.splitlines()[1] == line
    assert style in {str(span.style) for span in text.spans}


def test_a_difference_has_its_sign():
    finding = replace(a_finding(), evidence=(Evidence("more", MIB, is_change=True), Evidence("held", MIB)))

    assert explain_text([finding], (), TextOptions()).plain.splitlines()[-2:] == [
        "    more               +1.00 MiB",
        "    held                1.00 MiB",
    ]


def test_what_a_program_writes_cannot_paint_the_terminal():
    finding = replace(a_finding(), answer="\x1b[31mred\n", evidence=(Evidence("a", 1, "\x1b[31m[bold]\n"),))

    assert "\x1b" not in explain_text([finding], ("\x1b[31m",), TextOptions()).plain


def test_json():
    run = RUNS["trained"]()
    document = json.loads(explain_json(run, explain(run), ("a", "b")))

    assert document["schema"] == "vramscope.explain/1"
    assert document["origin"] == "predicted"
    assert document["not_known"] == ["a", "b"]
    assert [each["key"] for each in document["findings"]] == [each.key for each in explain(run)]
    (reserved,) = (each for each in document["findings"] if each["key"] == "reserved")
    assert reserved["remedies"][0]["saved_bytes"] is None
    assert reserved["remedies"][0]["of"] == "peak reserved"
    assert reserved["evidence"][0] == {
        "label": "cached whole",
        "size_bytes": 143872,
        "note": "18 segments with nothing in them, left by activations and workspaces",
        "is_change": False,
    }
    assert ALLOCATED == "peak allocated"
