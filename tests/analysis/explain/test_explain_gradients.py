from __future__ import annotations

from asking import MIB, ask, the_answer
from traces import Story
from vramscope.analysis.explain.finding import RECORDED, WASTE
from vramscope.analysis.explain.gradients import (
    EARLIER,
    SET_TO_NONE,
    gradients_through_evaluation,
    gradients_through_forward,
)


def training(zero: str, steps: int = 3, evaluation: bool = False) -> Story:
    """Two modules of 10 MiB of gradients and 40 MiB of activations each; `zero` says when gradients go.

    "step": right after the optimizer's step, "late": between forward and backward, "never": they are kept."""
    story = Story()
    gradients: dict[str, int] = {}
    for step in range(1, steps + 1):
        story.span("forward", step)
        kept = [story.alloc(40 * MIB, "activation", module=f"Net.{name}") for name in "ab"]
        if zero == "late":
            clear(story, gradients, step)
        story.span("backward", step)
        for name in "ba":
            passing = story.alloc(10 * MIB, "temporary", module=f"Net.{name}")
            if name in gradients:
                story.free(passing)
            else:
                gradients[name] = story.alloc(10 * MIB, "gradient", module=f"Net.{name}")
                story.free(passing)
            story.free(kept.pop())
        story.span("optimizer_step", step)
        story.free(story.alloc(512))
        if zero == "step":
            clear(story, gradients, step)
        if evaluation:
            story.span("evaluation", step + 1)
            story.free(story.alloc(5 * MIB))
    return story


def clear(story: Story, gradients: dict[str, int], step: int) -> None:
    story.span("zero_grad", step)
    for row in gradients.values():
        story.free(row)
    gradients.clear()


def test_gradients_that_are_filled_again():
    """At the first moment of backward 80 MiB of activations, 10 of a result, and 20 of gradients, of which the
    module that is reached has made 10 anew."""
    found = the_answer(gradients_through_forward, training("never"))

    assert found.question == "Why are 20.0 MiB of gradients held through the forward?"
    assert found.answer.startswith(
        "Those of step 2 were still there when step 3 began, and were filled again:"
    )
    assert found.severity == WASTE
    (remedy,) = found.remedies
    assert (remedy.change, remedy.saved_bytes, remedy.known) == (SET_TO_NONE, 10 * MIB, RECORDED)


def test_gradients_that_are_given_up_late():
    """Forward had 80 + 20 MiB, and backward's highest moment, 80 + 10 + 10, stays."""
    assert ask(gradients_through_forward, training("late")) == []


def test_gradients_that_are_given_up_late_and_make_the_peak():
    story = Story()
    held: list[int] = []
    for step in (1, 2, 3):
        story.span("forward", step)
        kept = story.alloc(80 * MIB, "activation")
        for row in held:
            story.free(row)
        story.span("backward", step)
        story.free(kept)
        held = [story.alloc(30 * MIB, "gradient")]
        story.span("optimizer_step", step)
        story.free(story.alloc(512))

    found = the_answer(gradients_through_forward, story)

    assert found.answer == "Those of step 2 were given up only after the forward of step 3 had begun."
    assert [(each.change, each.saved_bytes) for each in found.remedies] == [(EARLIER, 30 * MIB)]


def test_gradients_that_are_gone_in_time():
    assert ask(gradients_through_forward, training("step")) == []


def test_gradients_of_one_step_have_no_next_forward():
    assert ask(gradients_through_forward, training("never", steps=1)) == []


def test_an_accumulation_is_no_waste():
    """Several forwards and backwards before one step: the gradients have to be there."""
    story = Story()
    for step in (1, 2):
        rows = []
        for _ in range(3):
            story.span("forward", step)
            kept = story.alloc(40 * MIB, "activation")
            story.span("backward", step)
            rows = rows or [story.alloc(30 * MIB, "gradient")]
            story.free(kept)
        story.span("optimizer_step", step)
        story.free(story.alloc(512))
        story.span("zero_grad", step)
        for row in rows:
            story.free(row)

    assert ask(gradients_through_forward, story) == []


def test_gradients_through_an_evaluation():
    found = the_answer(gradients_through_evaluation, training("late", evaluation=True))

    assert found.question == "Why are 20.0 MiB of gradients held through the evaluation?"
    assert "The evaluation needs most in evaluation, step" in found.answer
    assert "25.0 MiB, with them" in found.answer
    assert [each.change for each in found.remedies] == [EARLIER]


def test_an_evaluation_with_few_gradients():
    story = training("late", evaluation=True)
    story.span("other", 9)
    story.free(story.alloc(5000 * MIB))

    assert ask(gradients_through_evaluation, story) == []


def test_an_evaluation_without_gradients():
    assert ask(gradients_through_evaluation, training("step", evaluation=True)) == []
    assert ask(gradients_through_evaluation, training("late")) == []
