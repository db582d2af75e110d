from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import builders
from traces import Story, training_story
from vramscope.analysis.lookup import (
    chosen_trace,
    complete_steps,
    has_clock,
    is_torch,
    line_of,
    lines_of,
    phase_of,
    span_numbers,
    steady_moments,
)
from vramscope.errors import UsageError
from vramscope.run.run import Run
from vramscope.run.trace import Frame, Tables

USER = Frame("train.py", 41, "main", True)
LIBRARY = Frame("timm/models/resnet.py", 7, "forward")
TORCH = Frame("torch/nn/modules/conv.py", 300, "forward")


def tables(*stacks: tuple[Frame, ...]) -> Tables:
    frames = list(dict.fromkeys(frame for stack in stacks for frame in stack))
    return Tables(frames=tuple(frames), stacks=((), *(tuple(map(frames.index, stack)) for stack in stacks)))


@pytest.mark.parametrize(
    ("stack", "line"),
    [
        ((TORCH, LIBRARY, USER), "train.py:41 in main"),
        ((TORCH, LIBRARY), "timm/models/resnet.py:7 in forward"),
        ((TORCH,), None),
    ],
)
def test_line_of(stack: tuple[Frame, ...], line: str | None):
    assert line_of(tables(stack), 1) == line


def test_a_stack_that_is_not_there_has_no_line():
    assert line_of(tables(), 0) is None
    assert line_of(tables(), 5) is None


def test_stacks_of_one_line_share_its_number():
    lines, numbers = lines_of(tables((TORCH, USER), (LIBRARY, USER), (LIBRARY,)))

    assert lines == [None, USER, LIBRARY]
    assert numbers.tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("file", "known"),
    [
        ("torch/nn/functional.py", True),
        ("/usr/lib/python3/site-packages/torch/_tensor.py", True),
        ("??", True),
        ("libtorch.so", True),
        ("torchvision/ops.py", False),
        ("torch.py", False),
        ("<stdin>", False),
        ("/home/me/torch/train.py", False),
    ],
)
def test_is_torch(file: str, known: bool):
    assert is_torch(Frame(file, 1, "f")) == known


def test_phases_of_moments():
    trace = training_story().trace()
    firsts = [span.first for span in trace.spans]

    assert phase_of(trace, firsts[1] - 1) == ("init", 1)
    assert phase_of(trace, firsts[1]) == ("forward", 1)
    assert phase_of(trace, -1) == (None, None)
    assert span_numbers(trace, np.array([-1, 0, trace.moments - 1])).tolist() == [-1, 0, len(firsts) - 1]


def test_a_moment_lies_in_the_last_of_the_spans_that_begin_there():
    story = Story().span("init").span("forward")
    story.alloc(512)

    assert phase_of(story.trace(), 0) == ("forward", None)


def test_a_trace_without_spans_knows_no_phase():
    trace = replace(training_story().trace(), spans=())

    assert phase_of(trace, 3) == (None, None)


def test_the_report_knows_which_step_was_cut_off():
    trace = training_story().trace()

    assert complete_steps(trace) == (1, 2)
    assert complete_steps(trace, builders.out_of_memory()) == (1,)


def test_the_steady_step_is_the_last_complete_one():
    trace = training_story().trace()
    first = next(span.first for span in trace.spans if span.step == 2)

    assert steady_moments(trace) == (first, trace.moments)
    assert steady_moments(replace(trace, spans=())) == (0, trace.moments)


def test_traces_are_chosen_by_card_and_process():
    first = training_story().trace()
    second, third = replace(first, pid=2), replace(first, pid=2, device=1)
    run = Run(None, traces=(first, second, third))

    assert chosen_trace(run) is first
    assert chosen_trace(run, process=2) is second
    assert chosen_trace(run, device=1) is third
    assert chosen_trace(Run(None), device=1) is None


def test_what_is_there_is_told_where_nothing_fits():
    run = training_story().run()

    with pytest.raises(UsageError) as caught:
        chosen_trace(run, device=3, process=9)
    assert str(caught.value) == "the run has nothing of process 9 and cuda:3; it has process 1 on cuda:0"


def test_a_trace_whose_times_are_all_the_same_has_no_clock():
    trace = training_story().trace()

    assert has_clock(trace)
    assert not has_clock(replace(trace, times_us=np.zeros_like(trace.times_us)))
