"""Wrong words get a message with the way out and status 2, before anything runs."""

from __future__ import annotations

import pytest

from vramscope.errors import BuildError, TorchError

WRONG = [
    (["predict"], "no program was named: vramscope predict train.py, -m package.train or -c 'code'"),
    (["predict", "missing.py"], "no such script: missing.py"),
    (["predict", "folder"], "folder is a folder without a __main__.py: name the script in it"),
    (["predict", "python3", "train.py"], "no such script: python3; leave out python"),
    (["predict", "-m"], "-m needs a module after it"),
    (["predict", "-c"], "-c needs code after it"),
    (["predict", "-"], "a program cannot come from stdin: save it in a file, or pass it with -c"),
    (["predict", "--gpu", "rtx-9999", "train.py"], "no card named 'rtx-9999'"),
    (["predict", "--memory", "lots", "train.py"], "'lots' is not a size"),
    (["predict", "--memory", "0", "train.py"], "'0' is not a size: it must be above zero"),
    (
        ["predict", "--fail-over", "12 parsecs", "train.py"],
        "'12 parsecs' is not a size: unknown unit 'parsecs'",
    ),
    (["predict", "--steps", "0", "train.py"], "'0' is no number of steps; write 1, 3, 10 ... or all"),
    (["predict", "--steps", "some", "train.py"], "'some' is no number of steps; write 1, 3, 10 ... or all"),
    (["predict", "--gpus", "0", "train.py"], "0 cards cannot be: 1 to 64"),
    (["predict", "--gpus", "65", "train.py"], "65 cards cannot be: 1 to 64"),
    (["predict", "--gpus", "two", "train.py"], "'two' is not a valid integer"),
    (["predict", "--assume", "nonsense=1", "train.py"], "nothing called 'nonsense' is assumed"),
    (["predict", "-o", "nowhere/x.vram", "train.py"], "there is no folder nowhere to write x.vram into"),
    (["predict", "--json", "folder", "train.py"], "folder is a folder: name the file to write"),
    (["predict", "--wrong", "train.py"], "No such option"),
    (["predict", "--gpu"], "Option '--gpu' requires an argument"),
    (["forecast"], "No such command 'forecast'"),
    (["show"], "Missing argument 'RUN'"),
    (["show", "missing.vram"], "cannot read missing.vram: No such file or directory"),
    (["show", "train.py"], "train.py is no run of vramscope, or was cut off"),
]


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_wrong_words(machine, script, vramscope, words, message):
    (script.parent / "folder").mkdir()

    ran = vramscope(*words)

    assert ran.status == 2
    assert message in " ".join(ran.err.split())
    assert "Traceback" not in ran.err
    assert ran.out == ""
    assert machine.asked == []


@pytest.mark.parametrize("error", [TorchError("this torch has no CUDA"), BuildError("no C compiler")])
def test_what_the_floors_below_raise_is_a_message(machine, script, vramscope, error):
    def fail(_program: object) -> None:
        raise error

    machine.during = fail

    ran = vramscope("predict", "--gpu", "rtx-3060", "train.py")

    assert ran.status == 2
    assert ran.err.strip() == f"vramscope: error: {error}"


def test_a_place_that_cannot_be_written_comes_after_the_report(machine, script, vramscope):
    machine.during = lambda _program: script.with_name("out").rmdir()
    script.with_name("out").mkdir()

    ran = vramscope("predict", "--gpu", "rtx-3060", "-o", "out/x.vram", "train.py")

    assert ran.status == 2
    assert "fits NVIDIA" in ran.err
    assert "cannot write out/x.vram: No such file or directory; choose another place with -o" in ran.err
