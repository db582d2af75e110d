"""The Python API: it joins the floors below it.  `vramscope predict` is this with flags.

The program always runs in a fresh process, so it makes no difference what the calling
one, a notebook for instance, has already imported."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import vramscope
from vramscope.errors import UnknownCardError, UsageError
from vramscope.run.collect import build_report
from vramscope.run.function import function_name, write_call
from vramscope.run.journal import Entry, Journal, integer, text
from vramscope.run.paths import shorter_paths, without_folders
from vramscope.run.report import UNLIMITED_BYTES, CardFigures, Outside, Report
from vramscope.units import parse_size

if TYPE_CHECKING:
    from vramscope.analysis.compare.figures import Comparison
    from vramscope.analysis.explain.finding import Finding
    from vramscope.cards import Card
    from vramscope.real.nvml import RealCard
    from vramscope.run.run import Run
    from vramscope.virtual.launch import Program

DEFAULT_CARD = "rtx-4090"
DEFAULT_STEPS = 3
MOST_GPUS = 64
"""VS_MAX_DEVICES of virtual/native/vs.h."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The card and the conditions that a program is run under."""

    card: Card
    gpus: int = 1
    memory_bytes: int | None = None
    """None: the card's own; UNLIMITED_BYTES: no limit."""
    steps: int | None = DEFAULT_STEPS
    """Optimizer steps after which the program is stopped; None: it runs to its end."""
    assume: str = ""
    environment: Mapping[str, str] | None = None
    """The program's environment; None: this process's."""
    history: bool = True
    """Every allocation is followed; False: only the peaks of phases, at half the time a step."""


def predict(
    target: str | os.PathLike[str] | Callable[[], object],
    gpu: str | None = None,
    *,
    gpus: int = 1,
    memory: str | int | None = None,
    steps: int | Literal["all"] | None = DEFAULT_STEPS,
    assume: str | Mapping[str, object] | None = None,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    save: str | os.PathLike[str] | None = None,
) -> Report:
    """Runs a program on a card that isn't there and reports the memory it takes.

    target        a script's path, or a function of no arguments that can be pickled
    gpu           a card's name (`vramscope gpus`); None: the machine's own card, else an RTX 4090
    gpus          so many of them, 1 to 64
    memory        bytes or a text like "12GiB" instead of the card's memory, or "unlimited"
    steps         optimizer steps after which the program is stopped; "all" or None: it runs to its end
    assume        values to take for what is read back from the card, {"nonzero": 0.5}
    arguments     the script's command line
    environment   its environment variables instead of this process's
    save          a path for the whole run, which `load` reads

    A program that crashes or runs out of memory is no error: the report says so.  Raises
    VramscopeError (UsageError, TorchError, BuildError ...) where nothing could be predicted."""
    setting = Setting(
        card_named(gpu),
        checked_gpus(gpus),
        memory_of(memory),
        steps_of(steps),
        assumptions(assume),
        environment,
    )
    return _reported_run(target, arguments, lambda program: run_program(program, setting), save)


def script(path: str | os.PathLike[str], arguments: Sequence[str] = ()) -> Program:
    """A script with its arguments; UsageError if there is none."""
    from vramscope.virtual.launch import Program

    place = Path(path)
    if not place.exists():
        raise UsageError(f"no such script: {place}")
    if place.is_dir() and not (place / "__main__.py").is_file():
        raise UsageError(f"{place} is a folder without a __main__.py: name the script in it")
    return Program("script", os.fspath(path), tuple(map(str, arguments)))


def run_program(program: Program, setting: Setting) -> Run:
    """Runs the program under the setting; the report and the journal that it was made from."""
    from vramscope.cards import outside_of
    from vramscope.run.assemble import traces_of
    from vramscope.run.run import PREDICTED, Run
    from vramscope.virtual.launch import launch

    _refuse_nested("predicted")
    environment = os.environ if setting.environment is None else setting.environment
    outside = outside_of(setting.card, eager=environment.get("CUDA_MODULE_LOADING", "").upper() == "EAGER")
    finished = launch(
        program,
        setting.card,
        devices=setting.gpus,
        memory_bytes=setting.memory_bytes,
        outside=outside,
        steps=setting.steps,
        assume=setting.assume,
        environment=setting.environment if setting.history else {**environment, "VRAMSCOPE_HISTORY": "off"},
    )
    journal, history = _split(finished.journal, program)
    report = build_report(
        journal,
        setting.card,
        program=_shown(program),
        gpus=setting.gpus,
        capacity_bytes=_capacity(setting),
        outside=_reported(outside),
        status=finished.status,
        machine_peaks=finished.peak_used_bytes,
        vramscope=vramscope.__version__,
    )
    return Run(report, journal, traces_of(history), PREDICTED, " ".join(report.program))


def measure(
    target: str | os.PathLike[str] | Callable[[], object],
    *,
    steps: int | Literal["all"] | None = DEFAULT_STEPS,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    save: str | os.PathLike[str] | None = None,
) -> Report:
    """Runs a program on this machine's GPU and reports the memory it took; `predict` without the virtual card.

    The arguments are those of `predict`.  Raises NoGpuError where there is no card."""
    wanted = steps_of(steps)
    return _reported_run(
        target, arguments, lambda program: measure_program(program, wanted, environment), save
    )


def load(path: str | os.PathLike[str]) -> Run:
    """A run that was saved; RunError says what is wrong with a file that is none.  Needs no torch."""
    from vramscope.run.store import load_run

    return load_run(path)


def explain(run: Run, others: Sequence[Run] = ()) -> tuple[Finding, ...]:
    """What puzzles people about a run, answered with its numbers; `others` ran under other settings."""
    from vramscope.analysis.explain import explain as answers

    return answers(run, others)


def compare(a: Run, b: Run) -> Comparison:
    """Two runs side by side: by category, phase and module, and why they differ."""
    from vramscope.analysis.compare import compare as compared

    return compared(a, b)


def measure_program(
    program: Program, steps: int | None = DEFAULT_STEPS, environment: Mapping[str, str] | None = None
) -> Run:
    """Runs the program on the real card; what the recorder and NVML saw of it."""
    from vramscope.real.launch import measure as launch_measured
    from vramscope.run.assemble import traces_of
    from vramscope.run.measured import device_cards, devices_of, entries_of, totals_of, with_totals
    from vramscope.run.run import MEASURED, Run

    _refuse_nested("measured", environment)
    finished = launch_measured(program, steps=steps, environment=environment)
    journal, history = _split(finished.journal, program)
    traces = traces_of(history)
    cards = device_cards(journal, {card.uuid.removeprefix("GPU-"): card.index for card in finished.cards})
    totals = totals_of(finished.samples, traces, cards, finished.looks)
    devices = devices_of(journal)
    card = _measured_card(devices, finished.cards)
    report = build_report(
        with_totals(journal, totals.outside.bytes),
        card,
        timed=True,
        program=_shown(program),
        gpus=max(len(devices), 1),
        capacity_bytes=card.memory_bytes,
        outside=totals.outside,
        status=finished.status,
        machine_peaks=[totals.peaks.get(number, 0) for number in range(len(devices))],
        vramscope=vramscope.__version__,
    )
    kept = replace(journal, entries=(*journal.entries, *entries_of(finished.samples)))
    return Run(report, kept, traces, MEASURED, " ".join(report.program))


def card_named(name: str | None) -> Card:
    """A card of the catalogue; without a name the machine's own if the catalogue has it, else the default."""
    from vramscope.cards import find_card

    if name is not None:
        return find_card(name)
    from vramscope.real.nvml import real_card_name

    real = real_card_name()
    if real is not None:
        try:
            return find_card(real)
        except UnknownCardError:
            pass
    return find_card(DEFAULT_CARD)


def checked_gpus(number: int) -> int:
    """A number of cards that a virtual machine can have."""
    if not 1 <= number <= MOST_GPUS:
        raise UsageError(f"{number} cards cannot be: 1 to {MOST_GPUS}")
    return number


def memory_of(memory: str | int | None) -> int | None:
    """The bytes of a size, of "unlimited", or None for the card's own."""
    if isinstance(memory, str):
        return UNLIMITED_BYTES if memory.strip().lower() == "unlimited" else parse_size(memory)
    if memory is not None and memory <= 0:
        raise UsageError(f"a card of {memory} bytes cannot be")
    return memory


def steps_of(steps: int | str | None) -> int | None:
    """A number of steps from one on; None for "all"."""
    if steps is None or steps == "all":
        return None
    try:
        number = int(steps)
    except ValueError:
        number = 0
    if number < 1:
        raise UsageError(f"{steps!r} is no number of steps; write 1, 3, 10 ... or all")
    return number


def assumptions(assume: str | Mapping[str, object] | Sequence[str] | None) -> str:
    """The assumptions as one text, ``nonzero=0.5;float=1.0``; UsageError for one that does not exist."""
    if not assume:
        return ""
    if isinstance(assume, str):
        text = assume
    elif isinstance(assume, Mapping):
        text = ";".join(f"{key}={value}" for key, value in assume.items())
    else:
        text = ";".join(assume)
    from vramscope.recording.values import policy

    policy.parse(text)
    return text


def _refuse_nested(what: str, environment: Mapping[str, str] | None = None) -> None:
    if "VRAMSCOPE_JOURNAL" in (os.environ if environment is None else environment):
        raise UsageError(
            f"a program that runs under vramscope asked to be {what} itself; "
            'in a script, put the call under `if __name__ == "__main__":`'
        )


def _split(journal: Journal, program: Program) -> tuple[Journal, Journal]:
    """The journal that a Run keeps and the history that its traces are made from, without this machine's paths."""
    from vramscope.run.assemble import split

    folder = _folder(program)
    short, long = split(journal)
    return without_folders(short, folder), without_folders(long, folder)


def _shown(program: Program) -> tuple[str, ...]:
    folder = _folder(program)
    return tuple(shorter_paths(word, folder) for word in _words(program))


def _measured_card(devices: Sequence[Entry], cards: Sequence[RealCard]) -> CardFigures:
    """The card as the program's torch described it; as NVML does, for a program that used none."""
    told = devices[0] if devices else {}
    name = text(told, "name") or cards[0].name
    major, minor = told.get("capability") or (0, 0)
    memory = integer(told, "memory_bytes") or cards[0].memory_bytes
    return CardFigures(_card_id(name), name, memory, (major, minor), integer(told, "sms") or 0)


def _card_id(name: str) -> str:
    from vramscope.cards import find_card

    try:
        return find_card(name).id
    except UnknownCardError:
        return name.lower().replace(" ", "-")


def _reported_run(
    target: str | os.PathLike[str] | Callable[[], object],
    arguments: Sequence[str],
    run: Callable[[Program], Run],
    save: str | os.PathLike[str] | None,
) -> Report:
    """The report of a script's run or of a function's, which is called from a script of ours."""
    if isinstance(target, (str, os.PathLike)):
        found = run(script(target, arguments))
    else:
        with tempfile.TemporaryDirectory(prefix="vramscope-") as folder:
            found = run(script(write_call(target, Path(folder)), arguments))
        found = _called(found, (f"{function_name(target)}()", *arguments))
    if save is not None:
        from vramscope.run.store import save_run

        save_run(save, found)
    assert found.report is not None  # only imported snapshots have none
    return found.report


def _called(run: Run, words: tuple[str, ...]) -> Run:
    """The run under the name of the function instead of our script's."""
    assert run.report is not None
    return replace(run, report=replace(run.report, program=words), name=" ".join(words))


def _folder(program: Program) -> str:
    """The folder that paths are told from: the script's, or the current one for -m and -c."""
    return str(Path(program.target).absolute().parent if program.kind == "script" else Path.cwd())


def _words(program: Program) -> tuple[str, ...]:
    flag = {"module": ("-m",), "code": ("-c",)}.get(program.kind, ())
    target = str(Path(program.target).absolute()) if program.kind == "script" else program.target
    return (*flag, target, *program.arguments)


def _capacity(setting: Setting) -> int | None:
    if setting.memory_bytes is None:
        return setting.card.memory_bytes
    return None if setting.memory_bytes >= UNLIMITED_BYTES else setting.memory_bytes


def _reported(outside: Any) -> Outside:
    """The cards' figure as the report keeps it."""
    return Outside(
        bytes=outside.bytes,
        low_bytes=outside.low_bytes,
        high_bytes=outside.high_bytes,
        how=outside.how,
        loading=outside.loading,
        note=outside.note or "",
    )
