from __future__ import annotations

from dataclasses import replace

import pytest

import builders
from asking import MIB, ask, facts, the_answer
from traces import Story
from vramscope.analysis.explain.finding import WRONG
from vramscope.analysis.explain.leak import leaks
from vramscope.run.run import Run


def leaking(size: int = MIB, category: str = "activation", *, steps: int = 4, until: int = 99) -> Story:
    """Each step keeps a block of line 20, up to step `until`, and makes one of line 30 that it gives up."""
    story = Story().span("init", 1)
    story.alloc(MIB, "parameter")
    for step in range(1, steps + 1):
        story.span("forward", step)
        if step <= until:
            story.alloc(size, category, module="Net.head", line=20)
        passing = story.alloc(4 * MIB, "activation", line=30)
        story.span("optimizer_step", step)
        story.free(passing)
    return story


def test_the_line_and_the_rate():
    found = the_answer(leaks, leaking())

    assert found.question == "Why does memory grow by 1.00 MiB each step?"
    assert found.answer.startswith(
        "Blocks made at train.py:20 in main in steps 1, 2, 3 were never given back:"
    )
    assert found.stake_bytes == 3 * MIB
    assert found.severity == WRONG
    assert found.where == ("train.py:20 in main",)
    assert [(each.size_bytes, each.note) for each in found.evidence] == [
        (3 * MIB, "3 blocks: activation of Net.head, train.py:20 in main")
    ]


def test_when_the_card_is_full():
    """The report has 8,470 MiB of 12,044.4 in use: 3,574.4 MiB are left, and 100 go each step."""
    story = leaking(100 * MIB)
    run = Run(builders.trained(), traces=(story.trace(),))

    (found,) = leaks(facts(story, run=run))

    assert found.answer.endswith("At that rate the card is full after 35 more steps.")


def test_a_leak_that_nobody_will_notice_has_no_end():
    story = leaking(512)

    (found,) = leaks(facts(story, run=Run(builders.trained(), traces=(story.trace(),))))

    assert "the card is full" not in found.answer


def test_what_only_the_last_step_kept_may_yet_go():
    assert ask(leaks, leaking(steps=2)) == []


def test_what_one_step_kept_is_no_leak():
    assert ask(leaks, leaking(until=1)) == []


@pytest.mark.parametrize("category", ["optimizer_state", "gradient", "parameter", "buffer", "workspace"])
def test_what_is_meant_to_last(category: str):
    assert ask(leaks, leaking(category=category)) == []


def test_what_is_given_back():
    story = Story()
    for step in (1, 2, 3, 4):
        story.span("forward", step)
        row = story.alloc(MIB, "activation", line=20)
        story.span("optimizer_step", step)
        story.free(row)

    assert ask(leaks, story) == []


def test_a_block_without_a_line():
    story = leaking()
    trace = story.trace()
    bare = replace(trace, blocks=replace(trace.blocks, stack=trace.blocks.stack * 0))

    assert "made without a Python line on the stack" in the_answer(leaks, bare).answer


def test_many_steps_are_counted_and_few_named():
    found = the_answer(leaks, leaking(steps=9))

    assert "in steps 1, 2, 3, 4, 5 … were" in found.answer
    assert found.stake_bytes == 8 * MIB
