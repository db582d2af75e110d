"""The parts of the page that stand in its HTML, and the tables that its script draws."""

from __future__ import annotations

from dataclasses import replace

import pytest
from page_runs import KINDS, marked, trained_run

from vramscope.analysis.explain.finding import Evidence, Finding, Remedy
from vramscope.analysis.layers import layers
from vramscope.analysis.stages import AFTER, CUT, FIRST, HIGHEST, STEADY, WHOLE, Stretch, stages
from vramscope.analysis.summary import summary
from vramscope.units import MIB
from vramscope.views.page.basis import basis_html, steps_html
from vramscope.views.page.findings import findings_html
from vramscope.views.page.markup import Markup, element, items, joined, pairs, section
from vramscope.views.page.summary import summary_html, title_of
from vramscope.views.page.tables import heading, layer_tables, stage_tables


def test_texts_and_attributes_are_escaped_and_markup_is_not():
    found = element("p", "<b>", element("i", "x"), class_='"', aria_label="a&b", hidden=True, title=None)

    assert found == '<p class="&quot;" aria-label="a&amp;b" hidden>&lt;b&gt;<i>x</i></p>'


@pytest.mark.parametrize("nothing", [section("a", "A", ""), items([]), pairs([]), joined([])])
def test_what_is_empty_is_left_out(nothing: Markup):
    assert nothing == ""


def test_a_finding_tells_its_figures():
    finding = Finding(
        key="x",
        question="Why <so> much?",
        answer="Because.",
        stake_bytes=3 * MIB,
        severity="waste",
        evidence=(Evidence("before", -2 * MIB, "a note"),),
        remedies=(
            Remedy("do this", MIB, "estimate", at_least=True),
            Remedy("or that", None, "when another run shows it", note="try it"),
        ),
        where=("train.py:4",),
    )

    found = findings_html([finding, finding], ["no modules are known"])

    assert "Why &lt;so&gt; much?" in found
    assert "<dd>−2.00 MiB <small>a note</small></dd>" in found
    assert "<b>at least −1.00 MiB</b> <small>peak allocated, estimate</small>" in found
    assert "<b>unknown</b> <small>peak allocated, when another run shows it; try it</small>" in found
    assert "<code>train.py:4</code>" in found
    assert found.count(" open>") == 1
    assert "no modules are known" in found


def test_without_findings_there_is_no_section():
    assert findings_html([], []) == ""


def test_the_head_tells_the_verdict_and_the_peaks_in_one_unit():
    run = trained_run()

    found = summary_html(run, summary(run, run.trace))

    assert '<p class="verdict fits">fits NVIDIA GeForce RTX 3060: peak 8.32 of 11.76 GiB' in found
    for figure in ("6.98 GiB", "8.15 GiB", "0.17 GiB", "8.32 GiB", "11.76 GiB"):
        assert f"<dd>{figure} " in found


def test_the_head_of_a_run_that_found_no_room_says_what_it_asked_for():
    run = KINDS["out of memory"]()

    found = summary_html(run, summary(run, run.trace))

    assert 'class="verdict does-not-fit"' in found
    assert "asked for 2.00 GiB on cuda:0 in backward, step 2 at train.py:41 in main: loss.backward()" in found


def test_a_snapshot_says_where_it_is_from_and_what_it_does_not_know():
    run = KINDS["imported"]()

    found = summary_html(run, summary(run, run.trace))

    assert "imported from a snapshot" in found
    assert "what was freed before it is not known" in found
    assert "verdict" not in found


def test_a_run_has_a_title():
    run = trained_run()

    assert title_of(run) == "train.py --batch-size 90"
    assert title_of(replace(run, name="")) == " ".join(run.report.program)
    assert title_of(KINDS["nothing"]()) == "a run without a name"


def test_all_that_a_report_rests_on_is_told():
    report = KINDS["troubled"]().report
    assert report is not None

    found = basis_html(report)

    for group in ("Assumed", "Modelled", "Not counted", "Not simulated", "Waiting", "Unverified"):
        assert f"<h3>{group} " in found
    assert found.count("<li>") >= len(report.assumed) + len(report.uncounted) + len(report.unsimulated)


def test_steps_that_are_not_whole_say_so():
    assert "step 2, not whole" in steps_html(KINDS["out of memory"]().report)
    assert steps_html(None) == basis_html(None) == ""


def test_layers_are_those_of_the_analysis():
    found = layers(trained_run().traces[0])

    (spec,) = layer_tables(found)

    assert [row[0] for row in spec["rows"]] == ["Net", "Net.a", "Net.b", "Net.c", "outside of modules"]
    assert spec["depths"] == [0, 1, 1, 1, 0]
    peak = [column["label"] for column in spec["columns"]].index("At the peak")
    assert spec["rows"][0][peak] + spec["rows"][-1][peak] == found.allocated_bytes


def test_stages_are_those_of_the_analysis():
    found = stages(trained_run().traces[0])

    (spec,) = stage_tables(found, clock=True)

    every = [stage for stretch in found.stretches for stage in stretch.stages]
    assert [row[1:4] for row in spec["rows"]] == [
        [stage.allocated_bytes, stage.peak_allocated_bytes, stage.change_bytes] for stage in every
    ]
    assert sum(count for _, count in spec["groups"]) == len(every)
    most = max(stage.peak_allocated_bytes for stage in every)
    assert spec["rows"][spec["marked"]][2] == most
    assert len(spec["rows"][0]) == len(spec["columns"]) + 2
    assert "Time" not in [column["label"] for column in stage_tables(found, clock=False)[0]["columns"]]


def test_marks_name_the_stages():
    (spec,) = stage_tables(stages(marked().traces[0]), clock=False)

    assert [row[0] for row in spec["rows"]] == ["model built", "data loaded"]
    assert spec["groups"] == [["", 2]]


def test_a_sentence_stands_where_there_is_no_table():
    trace = KINDS["imported"]().traces[0]

    assert layer_tables(layers(trace)) == [{"text": "No module is known of any block."}]
    empty = stages(replace(trace, spans=()))
    assert stage_tables(empty, clock=False) == [{"text": "No stages were recorded."}]


@pytest.mark.parametrize(
    ("kind", "step", "words"),
    [
        (FIRST, 1, "step 1"),
        (STEADY, 3, "step 3, the last whole one"),
        (HIGHEST, 2, "step 2, the highest"),
        (CUT, 2, "step 2, broken off"),
        (CUT, None, "broken off"),
        (AFTER, 3, "after step 3"),
        (WHOLE, None, ""),
    ],
)
def test_a_stretch_has_a_heading(kind: str, step: int | None, words: str):
    assert heading(Stretch(kind, step, ())) == words
