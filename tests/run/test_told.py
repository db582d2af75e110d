"""What a process told of its program, also where it told only part of it."""

from __future__ import annotations

from vramscope.run.told import told_by


def frame(number: int, file: str = "train.py") -> dict[str, object]:
    return {"kind": "frame", "number": number, "file": file, "line": number, "function": "f", "user": True, "text": ""}


def test_numbers_have_gaps():
    told = told_by([frame(0), frame(5), {"kind": "stack", "number": 1, "frames": [5, 0]}])

    assert [told.tables.frames[number].line for number in told.tables.stacks[1]] == [5, 0]


def test_a_stack_of_frames_that_were_never_told_is_without_them():
    told = told_by([frame(0), {"kind": "stack", "number": 1, "frames": [0, 7, -1, "x"]}])

    assert told.tables.stacks == ((), (0,))


def test_a_number_from_nowhere_makes_no_table():
    told = told_by([frame(1 << 40), {"kind": "name", "number": 1 << 40, "name": "x"}])

    assert len(told.tables.frames) <= 1
    assert told.tables.names == ("",)


def test_of_a_path_outside_the_program_only_its_end_is_kept():
    told = told_by([frame(0, "/home/someone/lib/model.py")])

    assert told.tables.frames[0].file == "lib/model.py"


def test_labels_that_are_none():
    told = told_by([{"kind": "contexts", "contexts": {"1": "3:0:2", "2": "nonsense", "3": "4:99:1", "x": "1:1:1"}}])

    assert told.contexts.tolist() == [[-1, 0, 0], [3, 0, 2], [-1, 0, 0], [4, 0, 1]]
