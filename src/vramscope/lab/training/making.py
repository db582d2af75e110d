"""Makes the grid: looks at the model and the data, predicts every cell, trains every cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import vramscope
from vramscope.cards import find_card
from vramscope.errors import MissingLibraryError, RecipeError, SourceError, UnknownCardError
from vramscope.jobs.facts import Facts
from vramscope.jobs.source import TIMM
from vramscope.jobs.techniques.packages import command_for
from vramscope.lab.grid import CANNOT_RUN, FAILED, TRAINED, Epoch, Grid, Memory, Reading, Training
from vramscope.lab.training import article, flowers
from vramscope.lab.training.data import FLOWERS, Data, data_of
from vramscope.lab.training.devices import Device, device_of
from vramscope.lab.training.kept import Kept, key_of
from vramscope.lab.training.looking import facts_for
from vramscope.lab.training.predicting import NO_CARD, Prediction, Predictor
from vramscope.lab.training.program import predicted_work, source_of, training_program
from vramscope.lab.training.progress import (
    ENDED,
    EVALUATING,
    KNOWN,
    PREDICTING,
    PREPARING,
    TRAINING,
    OnProgress,
    Progress,
    silent,
)
from vramscope.lab.training.request import CPU, CUDA, Request, request_of
from vramscope.lab.training.running import Told, Trained, pace, train
from vramscope.lab.training.tunes import uses_peft
from vramscope.planning.points import why_not
from vramscope.planning.versions import installed
from vramscope.theory.rates import shortest_step

_LIBRARIES = ("torch", "torchvision", "timm", "transformers", "peft", "bitsandbytes", "torchao")
"""What a cell's result hangs on, as they are called on PyPI."""


def train_grid(request: Request, progress: OnProgress = silent) -> Grid:
    """Trains every cell of the grid that no earlier run has finished.

    A cell that cannot run, fails or runs out of memory is no error: its `why_not` says so.  Raises
    UsageErrors for what makes no sense, NoGpuError for a device that is not here, and RunError if cells
    cannot be kept."""
    checked = request_of(request)
    data = data_of(checked)
    device = device_of(checked.device)
    with Kept(checked.out) as kept:
        progress(Progress(PREPARING, f"building {checked.source.text} on paper"))
        facts = facts_for(source_of(checked, data))
        predicted_work(checked, data, facts, "fp32", "full")  # an error of every cell is one of the request
        image = checked.image or facts.image
        if image is None:
            raise SourceError(f"{checked.source.text} does not say the size of its images: write --image")
        checked = replace(checked, image=image)
        if data.kind == FLOWERS:
            progress(Progress(PREPARING, "looking for Flowers102"))
            flowers.fetch(data.place)
        return _Making(checked, data, device, facts, kept, progress).grid()


@dataclass(slots=True)
class _Making:
    """A grid in the making."""

    request: Request
    data: Data
    device: Device
    facts: Facts
    kept: Kept
    progress: OnProgress
    notes: list[str] = field(default_factory=list)
    reused: int = 0
    number: int = 0
    """The cell's that is trained, from 1."""

    def grid(self) -> Grid:
        """All of it: predictions first, they are quick."""
        read = self._readings()
        predictions = self._predictions(list(read))
        cells = []
        for place in self.request.cells:
            self.number += 1
            cells.append(self._cell(*place, predictions.get(place, Prediction())))
        article_s = [
            Reading(*place, size, predictions.get(place, Prediction()).memory) for place, size in read.items()
        ]
        return self._grid(tuple(cells), tuple(article_s))

    def _readings(self) -> Mapping[tuple[str, str], float]:
        """What the article read of its cells, where the predictions are of its model and sizes."""
        request, source = self.request, self.request.source
        model = source.name if source.library == TIMM and not source.settings else source.text
        sizes = request.predicted_batch, request.predicted_image
        return article.readings(model, self.data.classes, *sizes, request.optimizer)

    def _predictions(self, more: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Prediction]:
        """Of the grid's cells, and of `more` that are not trained."""
        places = dict.fromkeys((*self.request.cells, *more))
        able = [place for place in places if not self._objection(*place)]
        predictor = Predictor(self.request, self.data, self.facts, self.kept, self._predicting)
        try:
            found = predictor.predict(able)
        except NO_CARD as error:
            self.notes.append(f"nothing is predicted: {error}")
            return {}
        for (precision, tune), each in found.items():
            if each.failed:
                self.notes.append(f"{precision} · {tune} could not be predicted: {each.failed}")
        return found

    def _predicting(self, precision: str, tune: str) -> None:
        self.progress(Progress(PREDICTING, f"{precision} · {tune}", 0, len(self.request.cells)))

    def _objection(self, precision: str, tune: str) -> str:
        """Why a cell cannot run, known before anything does; "" if it can."""
        if uses_peft(tune) and find_spec("peft") is None:
            return str(MissingLibraryError(f"tune={tune}", "peft", command_for("peft")))
        try:
            work = predicted_work(self.request, self.data, self.facts, precision, tune)
        except RecipeError as error:
            return str(error)
        return why_not(work) or ""

    def _cell(self, precision: str, tune: str, prediction: Prediction) -> Training:
        what = f"{precision} · {tune}"
        begun = self._begun(precision, tune, prediction)
        if sentence := self._objection(precision, tune):
            self._tell(ENDED, what, verdict=CANNOT_RUN)
            return replace(begun, verdict=CANNOT_RUN, why_not=sentence)
        program = training_program(self.request, self.data, self.facts, self.device.kind, precision, tune)
        key = key_of(
            "training",
            vramscope.__version__,
            program,
            asdict(self.device),
            self.data.fingerprint,
            installed(_LIBRARIES),
        )
        known = None if self.request.again else self.kept.get(key)
        if known is not None:
            self.reused += 1
            self._tell(KNOWN, what, verdict=TRAINED)
            return replace(begun, **_from_json(known))
        self._tell(TRAINING, what, epoch=1)
        ran = train(program, self.device.kind, lambda told: self._hear(what, told))
        shortest = shortest_step_seconds(self.device, precision, ran)
        ended = {**_ended(ran, self.request.batch, self.data.train), "shortest_step_seconds": shortest}
        if ended["verdict"] == TRAINED:
            self.kept.put(key, _to_json(ended))
        self._tell(ENDED, what, verdict=ended["verdict"])
        return replace(begun, **ended)

    def _begun(self, precision: str, tune: str, prediction: Prediction) -> Training:
        """What is known of a cell before it is trained."""
        return Training(
            precision,
            tune,
            FAILED,
            parameters=prediction.parameters,
            trainable=prediction.trainable,
            predicted=prediction.memory,
            predicted_fits=prediction.fits,
            why=prediction.why,
        )

    def _hear(self, what: str, told: Told) -> None:
        """Hands on what a process says."""
        stage = {"train": TRAINING, "test": EVALUATING}.get(told["at"])
        if stage is not None:
            known = {name: told[name] for name in ("epoch", "step", "steps", "loss", "accuracy")}
            self._tell(stage, what, **known)

    def _tell(self, stage: str, what: str, **known: Any) -> None:
        self.progress(
            Progress(stage, what, self.number, len(self.request.cells), epochs=self.request.epochs, **known)
        )

    def _slow(self) -> tuple[str, ...]:
        """What makes a cell's speed here tell nothing of other devices."""
        if self.device.kind == CPU and "amp-fp16" in self.request.precision:
            return ("PyTorch has no fast fp16 gradients of convolutions on a CPU: amp-fp16 is slow there",)
        return ()

    def _grid(self, cells: tuple[Training, ...], article_s: tuple[Reading, ...]) -> Grid:
        request = self.request
        return Grid(
            request.model,
            self.data.text,
            self.device.text,
            request.batch,
            request.image or 0,
            request.epochs,
            request.optimizer,
            request.seed,
            request.gpu,
            request.predicted_batch,
            request.predicted_image,
            cells,
            article_s,
            installed(_LIBRARIES),
            self.reused,
            train_images=self.data.train,
            test_images=self.data.test,
            notes=(*self._slow(), *self.notes),
            kept_in=str(self.kept.path),
        )


def shortest_step_seconds(device: Device, precision: str, ran: Trained) -> float | None:
    """The least time that a known card's arithmetic allows for a step; None for others, and where nobody counted."""
    if device.kind != CUDA or not ran.flops:
        return None
    try:
        card = find_card(device.name)
    except UnknownCardError:
        return None
    seconds = shortest_step(card, precision, ran.flops, ran.convolution_flops).values["seconds"]
    return None if seconds is None else float(seconds)


def _ended(ran: Trained, batch: int, images: int) -> dict[str, Any]:
    """The fields of a cell that only training tells."""
    seconds, samples = pace(ran, batch, images)
    found = {
        "verdict": FAILED if ran.why_not else TRAINED,
        "why_not": ran.why_not,
        "epochs": tuple(ran.epochs),
        "seconds_per_step": seconds,
        "samples_per_second": samples,
        "measured": ran.memory,
    }
    counts = {"parameters": ran.parameters, "trainable": ran.trainable}
    return {**found, **{name: count for name, count in counts.items() if count is not None}}


def _to_json(ended: Mapping[str, Any]) -> dict[str, Any]:
    measured = ended["measured"]
    return {
        **ended,
        "epochs": [asdict(each) for each in ended["epochs"]],
        "measured": asdict(measured) if measured else None,
    }


def _from_json(known: Mapping[str, Any]) -> dict[str, Any]:
    measured = known["measured"]
    return {
        **known,
        "epochs": tuple(Epoch(**each) for each in known["epochs"]),
        "measured": Memory(**measured) if measured else None,
    }
