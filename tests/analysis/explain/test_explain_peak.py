from __future__ import annotations

from asking import KIB, MIB, ask, figures, the_answer
from traces import Story, training_story
from vramscope.analysis.explain.first_step import first_step_differs
from vramscope.analysis.explain.peak import peak_made_of
from vramscope.analysis.explain.rounding import allocated_above_requested


def test_what_the_peak_is_made_of():
    found = the_answer(peak_made_of, training_story())

    assert found.question == "What is the peak of 98.5 KiB made of?"
    assert found.answer == (
        "Allocated memory is highest in backward, step 2, for Net.c. 49 % of it is activations."
    )
    assert figures(found) == {
        "activations": 49664,
        "optimizer states": 24576,
        "parameters": 12288,
        "inputs": 8192,
        "gradients": 4096,
        "workspaces": 2048,
    }
    assert sum(figures(found).values()) == found.stake_bytes == 100864
    assert found.where == ("Net.c", "train.py:12 in main")


def test_the_largest_of_a_category_is_named():
    found = the_answer(peak_made_of, training_story())

    assert (
        found.evidence[0].note == "4 blocks, the largest 16.0 KiB: activation of Net.a, train.py:10 in main"
    )
    assert found.evidence[4].note == "gradient of Net.c.weight, train.py:12 in main"


def test_a_peak_outside_of_modules_has_its_line():
    story = Story().span("forward", 1)
    story.alloc(512, line=31)

    assert "in forward, step 1, at train.py:31 in main" in the_answer(peak_made_of, story).answer


def test_a_peak_of_a_snapshot_has_its_line_alone():
    story = Story().span("other")
    story.alloc(512, "unknown", line=31)

    assert the_answer(peak_made_of, story).answer == (
        "Allocated memory is highest at train.py:31 in main. What 100 % of it is for is not known."
    )


def test_a_peak_of_which_nothing_is_known_has_its_event():
    story = Story().span("other")
    story.alloc(512)

    assert "is highest at event 1." in the_answer(peak_made_of, story).answer


def test_a_peak_between_phases():
    story = Story().span("other", 2)
    story.alloc(512)

    assert "is highest between phases, step 2." in the_answer(peak_made_of, story).answer


def test_the_first_step():
    found = the_answer(first_step_differs, training_story())

    assert found.question == "Why is step 1 24.0 KiB lower than step 2?"
    assert figures(found) == {"optimizer states": 24 * KIB}
    assert found.evidence[0].is_change
    assert found.evidence[0].note.startswith("the optimizer makes its states in its first step")


def test_what_the_step_before_left():
    story = Story().span("init", 1)
    story.alloc(100 * MIB, "parameter")
    logits = None
    for step in (1, 2, 3):
        story.span("forward", step, line=step)
        now = story.alloc(50 * MIB, "activation", line=20)
        story.span("backward", step)
        story.span("optimizer_step", step)
        story.free(story.alloc(512))
        if logits is not None:
            story.free(logits)
        logits = now

    found = the_answer(first_step_differs, story)

    assert figures(found) == {"activations": 50 * MIB}
    assert found.evidence[0].note == "results of the step before are still referred to"
    assert found.where == ("train.py:20 in main",)


def test_a_first_step_that_needs_more():
    story = Story()
    for step, size in ((1, 80), (2, 30)):
        story.span("forward", step)
        story.free(story.alloc(size * MIB, "temporary"))
        story.span("optimizer_step", step)
        story.free(story.alloc(512))

    found = the_answer(first_step_differs, story)

    assert found.question == "Why is step 1 50.0 MiB higher than step 2?"
    assert figures(found) == {"temporaries": -50 * MIB}
    assert found.evidence[0].note == ""


def test_small_differences_are_told_as_one():
    story = Story()
    kept = []
    for step in (1, 2):
        story.span("forward", step)
        kept.append(story.alloc(100 * MIB, "temporary"))
        story.span("optimizer_step", step)
        if step == 1:
            story.free(kept.pop())
            story.alloc(50 * MIB, "optimizer_state")
            story.alloc(512, "buffer")

    found = the_answer(first_step_differs, story)

    assert figures(found) == {"optimizer states": 50 * MIB, "other": 512}


def test_steps_that_are_alike():
    story = Story()
    for step in (1, 2):
        story.span("forward", step)
        story.free(story.alloc(80 * MIB, "temporary"))
        story.span("optimizer_step", step)
        story.free(story.alloc(512))

    assert ask(first_step_differs, story) == []


def test_one_step_has_nothing_to_differ_from():
    story = Story().span("forward", 1)
    story.alloc(512)
    story.span("optimizer_step", 1)
    story.alloc(MIB)

    assert ask(first_step_differs, story) == []


def test_the_beginning_is_no_part_of_the_first_step():
    story = Story().span("init", 1)
    story.free(story.alloc(500 * MIB))
    for step in (1, 2):
        story.span("forward", step)
        story.free(story.alloc(80 * MIB, "temporary"))
        story.span("optimizer_step", step)
        story.free(story.alloc(512))

    assert ask(first_step_differs, story) == []


def test_rounding():
    story = Story().span("forward", 1)
    for _ in range(100):
        story.alloc(512, "activation", requested=4, line=9)
    story.alloc(MIB, "activation", requested=MIB - 8 * KIB, line=10)

    found = the_answer(allocated_above_requested, story)

    assert figures(found) == {"rounding": 100 * 508, "rests": 8 * KIB}
    assert found.stake_bytes == 100 * 508 + 8 * KIB
    assert found.evidence[0].note == "100 blocks, at most 508 B: activation, train.py:9 in main"


def test_rounding_of_large_blocks_is_no_puzzle():
    story = Story().span("forward", 1)
    story.alloc(MIB, "activation", requested=MIB - 500)

    assert ask(allocated_above_requested, story) == []
