"""All answers of a run together: their order, and the runs that have little to tell."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

import builders
from asking import MIB, figures
from million import million_run
from traces import Story, training_story
from vramscope.analysis.explain import cannot_tell, explain
from vramscope.analysis.explain.facts import facts_of
from vramscope.analysis.explain.finding import WASTE, WRONG, Finding
from vramscope.run.report import Outside, Report, Retry
from vramscope.run.run import Run


def answer(run: Run, key: str) -> Finding | None:
    return next((each for each in explain(run) if each.key == key), None)


def of(report: Report, *stories: Story) -> Run:
    return Run(report, traces=tuple(story.trace() for story in stories))


def test_most_bytes_first():
    stakes = [each.stake_bytes for each in explain(of(builders.trained(), training_story()))]

    assert len(stakes) > 3
    assert stakes == sorted(stakes, reverse=True)


def test_each_question_has_a_key_of_its_own():
    found = explain(of(builders.out_of_memory(), training_story()))

    assert len({each.key for each in found}) == len(found)


def test_nvidia_smi():
    """The peaks of the process total and of reserved are 170 MiB apart: what is outside, and no more."""
    found = answer(of(builders.trained()), "outside")

    assert found is not None
    assert found.question == "Why does nvidia-smi show 8.32 GiB when torch has reserved 8.15 GiB?"
    assert figures(found) == {"context": 170 * MIB}
    assert "That is 170 MiB (formula, between 120 MiB and 320 MiB)." in found.answer
    assert found.remedies == ()


def test_other_processes_on_the_card():
    spans = [builders.span(1, "forward", 3000, 3500), builders.span(1, "forward", 2000, 2500, pid=7)]
    found = answer(of(builders.a_report([builders.PROCESS, *spans, builders.end("finished", 0)])), "outside")

    assert found is not None
    assert "more belong to another process on the card." in found.answer
    assert figures(found)["beside it"] == found.stake_bytes - 170 * MIB


def test_eager_loading_can_be_undone():
    eager = Outside(1500 * MIB, 1400 * MIB, 1600 * MIB, "formula", "eager")
    found = answer(of(replace(builders.trained(), outside=eager)), "outside")

    assert found is not None
    assert [each.change for each in found.remedies] == ["CUDA_MODULE_LOADING=LAZY, the default"]


def test_where_what_is_outside_grew():
    story = training_story()
    story.spans[:] = [
        replace(span, outside_bytes=(100 + 50 * (n > 2)) * MIB) for n, span in enumerate(story.spans)
    ]

    found = answer(of(builders.trained(), story), "outside")

    assert found is not None
    assert found.answer.endswith("It grew most, by 50.0 MiB, in optimizer step, step 1.")


def test_out_of_memory():
    found = answer(of(builders.out_of_memory()), "out_of_memory")

    assert found is not None
    assert found.question == "Why was there no room for 2.00 GiB?"
    assert found.answer == (
        "The program ended with a request for 2.00 GiB at train.py:41 in main in backward, step 2. 1.26 GiB of the "
        "card's 11.8 GiB were free."
    )
    assert figures(found) == {
        "allocated": 9 << 30,
        "cached": 1 << 30,
        "outside": 1 << 29,
        "asked for": 2 << 30,
    }
    assert found.remedies == ()
    assert found.severity == WRONG


def test_out_of_memory_with_enough_in_pieces():
    entries = [builders.oom(2, requested_bytes=900 * MIB), builders.end("oom", 1)]
    found = answer(of(builders.a_report([*builders.training(1), *entries], status=1)), "out_of_memory")

    assert found is not None
    assert "1.00 GiB were reserved and unused, but in no one piece that was large enough." in found.answer
    assert [each.saved_bytes for each in found.remedies] == [None]


def test_out_of_memory_that_was_caught():
    found = answer(of(builders.REPORTS["caught_out_of_memory"]()), "out_of_memory")

    assert found is not None
    assert found.answer.startswith("The program went on after a request for 2.00 GiB")


def test_retries():
    report = replace(builders.trained(), retries=(Retry(0, 2, "forward", 3), Retry(0, 3, "forward", 1)))
    found = answer(of(report), "retries")

    assert found is not None
    assert found.question == "Why did the allocator have to try 4 times again?"
    assert "first in forward, step 2" in found.answer
    assert found.severity == WASTE


def test_no_retry_is_told_of_where_the_last_one_failed():
    report = replace(builders.out_of_memory(), retries=(Retry(0, 2, "forward", 1),))

    assert answer(of(report), "retries") is None
    assert answer(of(builders.trained()), "retries") is None


@pytest.mark.parametrize("name", builders.REPORTS)
def test_a_run_of_a_report_alone(name: str):
    run = Run(builders.REPORTS[name]())

    assert {each.key for each in explain(run)} <= {"outside", "out_of_memory", "retries"}
    assert any("no history of the allocator" in each for each in cannot_tell(run))


def test_an_empty_run():
    assert explain(Run(None)) == ()
    assert len(cannot_tell(Run(None))) == 2


def test_a_history_in_which_nothing_happened():
    assert explain(Story().run()) == ()
    assert any("no history" in each for each in cannot_tell(Story().run()))


def test_a_history_of_blocks_without_bytes():
    story = Story().span("forward", 1)
    story.alloc(0)

    assert explain(story.run()) == ()


def test_a_snapshot():
    """No report, no modules, no phases, and blocks that were there before it began."""
    story = Story().span("other")
    story.alloc(20 * MIB, "unknown")
    story.alloc(MIB, "unknown", line=3)
    trace = story.trace()
    before = trace.blocks.born.copy()
    before[0] = -1
    run = replace(
        story.run(), traces=(replace(trace, blocks=replace(trace.blocks, born=before), whole=False),)
    )

    assert [each.key for each in explain(run)] == ["peak"]
    assert cannot_tell(run) == (
        "a snapshot knows neither the card nor what the process held outside the allocator",
        "no modules are known: nothing is said about layers, frozen ones and checkpoints",
        "no training step is known: nothing is said about steps and optimizers",
    )


def test_of_several_histories_one_is_explained():
    run = of(builders.trained(), training_story(), training_story())

    assert cannot_tell(run) == (
        "of 2 histories only that of process 1 on cuda:0 is explained, which allocated most",
    )


def test_a_run_that_was_cut_off():
    run = of(builders.out_of_memory(), training_story())

    assert cannot_tell(run) == ("the program was cut off: what would have come later is in no answer",)


def test_what_the_recorder_could_not_do():
    run = of(builders.trained(), training_story())
    trace = replace(run.traces[0], notes=("a part is missing",))

    assert cannot_tell(replace(run, traces=(trace,))) == ("a part is missing",)


def test_steps_are_counted_by_their_places():
    """Numbers of steps may be anything; what is asked for is the next one."""
    story = training_story()
    story.spans[:] = [replace(span, step=span.step * (1 << 60)) for span in story.spans if span.step]

    found = answer(story.run(), "first_step")

    assert found is not None
    assert found.question == f"Why is step {1 << 60} 24.0 KiB lower than step {2 << 60}?"


def test_blocks_without_a_segment_that_is_there():
    """A damaged run may have them; the sums do not close, but every question gets by."""
    run = training_story().run()
    trace = run.traces[0]
    gone = replace(trace, segments=replace(trace.segments, freed=trace.segments.born.copy()))
    early = replace(trace, segments=replace(trace.segments, freed=np.minimum(trace.segments.freed, 30)))

    assert [each.key for each in explain(replace(run, traces=(gone,)))] == ["peak", "first_step"]
    assert explain(replace(run, traces=(early,)))


def test_no_facts_of_a_trace_without_spans():
    trace = replace(training_story().trace(), spans=())

    assert facts_of(Run(None, traces=(trace,)), trace) is None


def test_a_million_events():
    run = million_run()
    begun = time.process_time()
    found = explain(run)

    assert time.process_time() - begun < 2
    assert {"peak", "reserved", "first_step"} <= {each.key for each in found}
