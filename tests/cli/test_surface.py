"""Every verb and every option, in full: an addition has to be written down here too."""

from __future__ import annotations

import click
import pytest

from vramscope.cli import VERBS, group

SURFACE = {
    "predict": [
        *(
            "--gpu CARD",
            "--gpus N",
            "--memory SIZE",
            "--steps N",
            "-o RUN",
            "--no-history",
            "--json FILE",
            "--fail-over SIZE",
        ),
        "--assume KEY=VALUE",
    ],
    "measure": ["--steps N", "-o RUN", "--json FILE", "--fail-over SIZE"],
    "plan": [
        *("SOURCE", "--gpu CARD[,CARD]", "--memory SIZE", "--used SIZE", "--vary KNOB=V,V", "--fit KNOB"),
        *("--margin SIZE|%", "--multiple-of N", "--cheapest", "--budget SIZE", "--cell N", "--emit FILE", "-o RUN"),
        *("--csv FILE", "--json FILE", "--html FILE", "--sort memory|order", "--out DB", "--jobs N", "--dask ADDRESS"),
        *("--limit SECONDS", "--task TASK", "--batch N", "--image N", "--seq N", "--new-tokens N", "--accumulate N"),
        *("--allocator ALLOCATOR", "--cudnn-benchmark BENCHMARK", "--precision PRECISION", "--attention ATTENTION"),
        *("--weights WEIGHTS", "--tune TUNE", "--targets N", "--channels-last LAST", "--cache CACHE"),
        *("--checkpoint CHECKPOINT", "--offload OFFLOAD", "--cross-entropy ENTROPY", "--optimizer OPTIMIZER"),
        *("--optimizer-impl IMPL", "--optimizer-in-backward BACKWARD", "--zero-grad GRAD", "--clip CLIP"),
        *("--ema EMA", "--compile COMPILE"),
    ],
    "formula": [
        *("[NAME:KEY=VALUE,…]...", "--list", "--params N", "--model SOURCE", "--optimizer OPTIMIZER"),
        *("--precision PRECISION", "--gpu CARD", "--ranks N", "--tokens N", "--batch N", "--seq N", "--image N"),
        *("--tune TUNE", "-s KNOB=VALUE", "--json FILE"),
    ],
    "lab": [],
    "lab stages": [
        *("[MODEL]...", "--batch N", "--image N", "--seq N", "--no-activations", "--all", "--gpu CARD"),
        *("--memory SIZE", "--no-measure", "--emit FILE", "-o RUN", "--json FILE"),
    ],
    "lab train": [
        *("--model SOURCE", "--data DATA", "--size N", "--image N", "--precision P,P", "--tune T,T", "--batch N"),
        *("--epochs N", "--optimizer NAME", "--lr RATE", "--seed N", "--device DEVICE", "--gpu CARD"),
        *("--predict-batch N", "--predict-image N", "--out DB", "--again", "--workers N", "--data-root DIR"),
        *("--csv FILE", "--json FILE", "--plots DIR"),
    ],
    "show": [
        *("RUN", "--stages", "--layers", "--depth N", "--peak", "--at MOMENT", "--lines", "--timeline"),
        *("--device N", "--process PID", "--json"),
    ],
    "explain": ["RUN", "--with OTHER", "--json"],
    "diff": ["A", "B", "--json"],
    "export": ["RUN", "FILE"],
    "import": ["SNAPSHOT.pickle", "-o RUN"],
    "gpus": ["--json"],
    "doctor": ["--json"],
}


def test_verbs():
    assert [each for each in SURFACE if " " not in each] == list(VERBS)


def command_of(words: str) -> click.Command:
    """The command of a verb, or of a verb's own command."""
    command: click.Command = group
    for word in words.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    return command


@pytest.mark.parametrize("verb", SURFACE)
def test_options(verb: str):
    command = command_of(verb)

    assert [_shown(each) for each in command.params] == SURFACE[verb]


@pytest.mark.parametrize("verb", SURFACE)
def test_help(vramscope, verb: str):
    ran = vramscope(*verb.split(), "--help")

    assert ran.status == 0
    assert f"Usage: vramscope {verb}" in ran.out
    for words in SURFACE[verb]:
        assert words in ran.out
    assert len(max(ran.out.splitlines(), key=len)) <= 100


def test_a_line_for_each_verb(vramscope):
    ran = vramscope("--help")

    for verb in VERBS:
        assert f"\n  {verb} " in ran.out


def test_version(vramscope):
    import vramscope as package

    assert vramscope("--version").out == f"vramscope {package.__version__}\n"


def _shown(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return parameter.make_metavar(click.Context(group))
    metavar = "" if getattr(parameter, "is_flag", False) else f" {parameter.metavar}"
    return parameter.opts[0] + metavar
