from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from asking import MIB, ask, facts, the_answer
from traces import Story
from vramscope.analysis.explain.finding import ESTIMATE, RECORDED
from vramscope.analysis.explain.lower import lower_the_peak
from vramscope.analysis.explain.optimizer import optimizer_remedies
from vramscope.analysis.explain.outputs import output_remedies
from vramscope.analysis.explain.savings import Change, highest_together
from vramscope.run.trace import Optimizer


def two_peaks() -> Story:
    """100 MiB in forward, of which 60 are one block; then 70 in backward."""
    story = Story().span("forward", 1)
    first, second = story.alloc(40 * MIB), story.alloc(60 * MIB)
    story.free(first)
    story.free(second)
    story.span("backward", 1)
    story.alloc(70 * MIB)
    return story


def test_the_next_highest_moment_limits():
    found = facts(two_peaks())

    saving = Change(found).remove(np.array([1])).saving()

    assert saving.saved_bytes == 30 * MIB
    assert found.allocated[saving.moment] == 70 * MIB


def test_part_of_a_block_s_life():
    found = facts(two_peaks())
    born, freed = int(found.blocks.born[1]), int(found.blocks.freed[1])

    assert Change(found).remove(np.array([1]), born + 1).saving().saved_bytes == 0
    assert Change(found).remove(np.array([1]), born, freed).saving().saved_bytes == 30 * MIB
    assert Change(found).remove(np.array([1]), freed, born).saving().saved_bytes == 0


def test_what_is_added_counts_against_it():
    found = facts(two_peaks())

    change = Change(found).remove(np.array([1])).add(0, found.trace.moments, 10 * MIB)

    assert change.saving().saved_bytes == 20 * MIB


def test_blocks_that_are_never_there_together():
    found = facts(two_peaks())

    assert highest_together(found, np.array([0, 1])) == 100 * MIB
    assert highest_together(found, np.array([1, 2])) == 70 * MIB
    assert highest_together(found, np.array([], np.int64)) == 0


def stepping(optimizer: Optimizer, sizes: tuple[int, ...] = (4, 8, 2), forward: int = 0) -> Story:
    """Steps whose Adam has states and as many temporaries; sizes in MiB."""
    story = Story().span("init", 1)
    story.optimizers.append(replace(optimizer, parameters=sum(sizes) * MIB // 4))
    for number, size in enumerate(sizes):
        story.alloc(size * MIB, "parameter", name=f"Net.{number}.weight")
    for step in (1, 2):
        story.span("forward", step)
        if forward:
            story.free(story.alloc(forward * MIB, "activation"))
        story.span("optimizer_step", step)
        for number, size in enumerate(sizes if step == 1 else ()):
            for state in ("exp_avg", "exp_avg_sq"):
                story.alloc(size * MIB, "optimizer_state", name=f"Net.{number}.weight {state}")
        for row in [story.alloc(size * MIB, "temporary") for size in sizes]:
            story.free(row)
    return story


def adam(kind: str = "Adam", **settings: object) -> Optimizer:
    return Optimizer(kind, 0, None, None, settings)


def test_one_parameter_at_a_time():
    """A root and a quotient, and the last parameter's quotient: three of four blocks."""
    remedies = {each.change: each for each in ask(optimizer_remedies, stepping(adam(), (4, 4, 4, 4)))}

    found = remedies["foreach=False in Adam"]
    assert (found.saved_bytes, found.known) == ((16 - 12) * MIB, RECORDED)
    assert found.note == ("its step makes 16.0 MiB of temporaries at once, one parameter at a time 12.0 MiB")


def test_a_loop_that_needs_as_much_saves_nothing():
    assert "foreach=False in Adam" not in [each.change for each in ask(optimizer_remedies, stepping(adam()))]


def test_weight_decay_makes_another_gradient():
    def saved(optimizer: Optimizer) -> int | None:
        found = {each.change: each for each in ask(optimizer_remedies, stepping(optimizer, (4,) * 8))}
        return found[f"foreach=False in {optimizer.kind}"].saved_bytes

    assert saved(adam(weight_decay=0.0)) == (32 - 12) * MIB
    assert saved(adam(weight_decay=0.1)) == (32 - 16) * MIB
    assert saved(adam("AdamW", weight_decay=0.1)) == (32 - 12) * MIB
    assert saved(adam("Adam", weight_decay=0.1, decoupled_weight_decay=True)) == (32 - 12) * MIB


def test_fused_has_a_count_of_steps_for_each_parameter():
    found = {each.change: each for each in ask(optimizer_remedies, stepping(adam()))}["fused=True in Adam"]

    assert (found.saved_bytes, found.known) == (14 * MIB - 3 * 512, RECORDED)


def test_the_saving_ends_at_the_next_highest_moment():
    """Forward needs 9 MiB less than the step: 5 against 14, each beside parameters and states."""
    found = {each.change: each for each in ask(optimizer_remedies, stepping(adam(), forward=5))}

    assert found["fused=True in Adam"].saved_bytes == 9 * MIB - 3 * 512


@pytest.mark.parametrize(
    "optimizer",
    [
        Optimizer("Adam", 3, foreach=False),
        Optimizer("Adam", 3, fused=True),
        Optimizer("LBFGS", 3),
        Optimizer("Adam8bit", 3, foreach=False),
    ],
)
def test_what_already_steps_otherwise(optimizer: Optimizer):
    changes = [each.change for each in ask(optimizer_remedies, stepping(optimizer))]

    assert not any("fused" in change for change in changes)
    assert not any("foreach" in change for change in changes if optimizer.kind != "LBFGS")


def test_another_optimizer_s_loop_is_an_estimate():
    found = {each.change: each for each in ask(optimizer_remedies, stepping(adam("NAdam"), (4,) * 8))}

    assert found["foreach=False in NAdam"].known == ESTIMATE


def test_eight_bits():
    """An element's four bytes become one and 4/256; there are no temporaries."""
    found = {each.change: each for each in ask(optimizer_remedies, stepping(adam()))}[
        "Adam in 8 bits (bitsandbytes)"
    ]
    smaller = sum(2 * (size * MIB // 4 + size * MIB // 4 // 256 * 4) for size in (4, 8, 2))

    assert (found.saved_bytes, found.known) == (28 * MIB - smaller + 14 * MIB, ESTIMATE)
    assert found.note == "states of 7.11 MiB instead of 28.0 MiB"


def test_small_states_stay_in_32_bits():
    story = Story().span("optimizer_step", 1)
    story.optimizers.append(Optimizer("AdamW", 2048))
    for _ in range(2):
        story.alloc(8192, "optimizer_state")

    assert not any("8 bits" in each.change for each in ask(optimizer_remedies, story))


def test_states_of_an_unknown_width_are_not_guessed_at():
    story = Story().span("optimizer_step", 1)
    story.optimizers.append(Optimizer("AdamW", 1 << 20))
    story.alloc(16 * MIB, "optimizer_state")

    assert not any("8 bits" in each.change for each in ask(optimizer_remedies, story))


def test_results_that_wait_for_the_next_ones():
    story, before = Story(), None
    for step in (1, 2, 3):
        story.span("forward", step)
        logits = story.alloc(30 * MIB, "activation", line=20)
        inside = story.alloc(60 * MIB, "activation")
        if before is not None:
            story.free(before)
        story.span("backward", step)
        story.free(inside)
        story.span("optimizer_step", step)
        story.free(story.alloc(512))
        before = logits

    remedy = the_answer(output_remedies, story)

    assert (remedy.saved_bytes, remedy.known) == (30 * MIB, RECORDED)
    assert remedy.note == (
        "30.0 MiB of a step's results live until the next step has its own, made at train.py:20 in main"
    )


def test_what_is_given_up_in_its_step_and_what_is_never_given_up():
    story = Story()
    for step in (1, 2, 3):
        story.span("forward", step)
        story.alloc(30 * MIB, "activation")
        passing = story.alloc(60 * MIB, "activation")
        story.span("backward", step)
        story.free(passing)
        story.span("optimizer_step", step)
        story.free(story.alloc(512))

    assert ask(output_remedies, story) == []


def test_lowering_the_peak():
    found = facts(stepping(adam(), (4,) * 8))

    (answer,) = lower_the_peak(found, [])

    assert answer.question == "What would lower the peak of 128 MiB?"
    saved = [each.saved_bytes or 0 for each in answer.remedies]
    assert saved == sorted(saved, reverse=True)
    assert answer.stake_bytes == saved[0]
    assert [each.change for each in answer.remedies] == [
        "Adam in 8 bits (bitsandbytes)",
        "fused=True in Adam",
        "foreach=False in Adam",
    ]


def test_nothing_to_lower():
    story = Story().span("forward", 1)
    story.alloc(MIB)
    assert list(lower_the_peak(facts(story), [])) == []
