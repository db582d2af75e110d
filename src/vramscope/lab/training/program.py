"""Writes a cell's program: plain PyTorch that trains and evaluates, and says how it goes in lines of JSON.

Its model, techniques and optimizer are those of `vramscope.jobs`.  The program of a prediction is the same
one with batches without content, as large as those of the article's data."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from textwrap import indent

from vramscope.errors import SourceError
from vramscope.jobs.facts import CLASSIFICATION, Facts
from vramscope.jobs.recipe import recipe_of
from vramscope.jobs.script import Script
from vramscope.jobs.source import HF, Source
from vramscope.jobs.work import Work
from vramscope.jobs.wrapping import wrapped, wrapped_title
from vramscope.jobs.write import settled, write_program
from vramscope.lab.training import article
from vramscope.lab.training.data import FAKE, Data, write_data
from vramscope.lab.training.request import CUDA, Request
from vramscope.lab.training.tunes import position_of, write_own

MOST_LINES = 20
"""So often an epoch says how far it is."""
_CHANNELS = (1, 3)
_LR = re.compile(r"\blr=[\d.e+-]+")
_USUAL_LR = {"adam": 1e-3, "adamw": 1e-3}
_SAY = '''\
def say(at, **told):
    """A line for whoever started this program."""
    print(json.dumps({"at": at, **told}), flush=True)'''
_ZEROS = '''\
class Zeros:
    """Batches of the sizes of real ones; what is in them does not matter to memory."""

    def __init__(self, *sizes):
        self.sizes = sizes

    def __len__(self):
        return len(self.sizes)

    def __iter__(self):
        for size in self.sizes:
            yield torch.zeros(size, {channels}, IMAGE, IMAGE), torch.zeros(size, dtype=torch.long)'''
_PASS = '''\
class Pass:
    """The sums of one pass over the data."""

    def __init__(self, what, epoch, batches):
        self.what, self.epoch, self.steps = what, epoch, len(batches)
        self.loss, self.right, self.images, self.seconds = 0.0, 0, 0, []

    def add(self, loss, logits, labels, began):
        """Counts a step in; reading the loss waits for the device."""
        self.loss += loss.item() * len(labels)
        self.right += (logits.argmax(1) == labels).sum().item()
        self.images += len(labels)
        self.seconds.append(time.perf_counter() - began)
        step = len(self.seconds)
        if step == self.steps or step % max(self.steps // LINES, 1) == 0:
            say(self.what, epoch=self.epoch, step=step, steps=self.steps, **self.means())

    def means(self):
        return {"loss": self.loss / self.images, "accuracy": self.right / self.images}'''
_TEST = """\
@torch.no_grad()
def evaluate(epoch):
    model.eval()
    done = Pass("test", epoch, test_batches)
    for images, labels in test_batches:
        began = time.perf_counter()
        images, labels = {moved}
{forward}
        done.add(loss, logits, labels, began)
    return done"""
_TRAIN = """\
def train(epoch):
    model.train()
    done = Pass("train", epoch, train_batches)
    for images, labels in train_batches:
        began = time.perf_counter()
        images, labels = {moved}
{forward}
{step}
        done.add(loss, logits, labels, began)
    return done"""
_EPOCHS = """\
say(
    "model",
    parameters=sum(each.numel() for each in model.parameters()),
    trainable=sum(each.numel() for each in trained),
)
for epoch in range(1, EPOCHS + 1):
    began = time.perf_counter()
    trained_on = train(epoch)
    seconds = time.perf_counter() - began
    tested_on = evaluate(epoch) if len(test_batches) else None
    say(
        "epoch",
        epoch=epoch,
        train=trained_on.means(),
        test=tested_on and tested_on.means(),
        seconds=seconds,
        step_seconds=trained_on.seconds,
    )
if device.type == "cuda":
    say(
        "memory",
        allocated=torch.cuda.max_memory_allocated(),
        reserved=torch.cuda.max_memory_reserved(),
    )
say("end")"""
_COUNT = """\
# What a step computes, for the shortest time that the card could do it in.
too_many = []


def see(convolution, inputs, output):
    # torch's counter takes the gradient of a grouped convolution's weight for that of an ungrouped one
    forward = 2 * output.numel() * convolution.weight[0].numel()
    too_many.append(forward * (convolution.groups - 1))


for module in model.modules():
    if isinstance(module, torch.nn.Conv2d) and module.groups > 1 and module.weight.requires_grad:
        module.register_forward_hook(see)
model.train()
images, labels = next(iter(train_batches))
with FlopCounterMode(display=False) as counter:
    images, labels = {moved}
{forward}
    loss.backward()
counts = counter.get_flop_counts()["Global"]
say(
    "flops",
    step=sum(counts.values()) - sum(too_many),
    convolutions=sum(count for each, count in counts.items() if "convolution" in str(each)) - sum(too_many),
)"""


def source_of(request: Request, data: Data) -> Source:
    """The model with as many outputs as the data have classes, and without weights that must be fetched."""
    return _without_weights(_fitted(request.source, data.classes))


def _fitted(source: Source, classes: int) -> Source:
    key = "num_labels" if source.library == HF else "num_classes"
    others = tuple(pair for pair in source.settings if pair[0] != key)
    return replace(source, settings=(*others, (key, str(classes))))


def _without_weights(source: Source) -> Source:
    return replace(source, settings=tuple(pair for pair in source.settings if pair[0] != "pretrained"))


def training_program(
    request: Request, data: Data, facts: Facts, device: str, precision: str, tune: str
) -> str:
    """The text of a cell that trains on a device; RecipeError for techniques that do not go with the model."""
    source = _fitted(request.source, data.classes)
    work = _work(request, source, facts, precision, tune, request.batch, request.image)
    script = _script(request, work, tune)
    write_data(script, data, facts.channels, request.workers)
    script.constants.update(EPOCHS=str(request.epochs))
    if device == CUDA:
        script.imports.add("from torch.utils.flop_counter import FlopCounterMode")
    title = f"{request.model} on {data.text}: {precision}, {tune}. Written by `vramscope lab train`."
    return _rendered(script, title, device, work, counts=device == CUDA)


def predicted_program(request: Request, data: Data, facts: Facts, precision: str, tune: str) -> str:
    """The text of the same cell on a card, at the batch and image size of the predictions."""
    work = predicted_work(request, data, facts, precision, tune)
    script = _script(request, work, tune)
    script.functions.append(_ZEROS.format(channels=facts.channels))
    train, test = _sizes(request, data)
    script.batch[:] = [f"train_batches, test_batches = Zeros({', '.join(train)}), Zeros({', '.join(test)})"]
    script.constants.update(EPOCHS="2")  # the second one begins with what evaluation has left
    title = (
        f"{request.model}: {precision}, {tune}, on batches without content. Written by `vramscope lab train`."
    )
    return _rendered(script, title, "cuda", work)


def predicted_work(request: Request, data: Data, facts: Facts, precision: str, tune: str) -> Work:
    """What a prediction's program is written from."""
    source = source_of(request, data)
    return _work(request, source, facts, precision, tune, request.predicted_batch, request.predicted_image)


def _work(
    request: Request, source: Source, facts: Facts, precision: str, tune: str, batch: int, image: int | None
) -> Work:
    if CLASSIFICATION not in facts.tasks:
        raise SourceError(
            f"{source.text} ({facts.kind}) is no image classifier: `lab train` trains those; `vramscope plan`"
            " predicts others"
        )
    if facts.channels not in _CHANNELS:
        raise SourceError(f"{source.text} takes images of {facts.channels} channels; they have 1 or 3")
    turned = {
        "task": CLASSIFICATION,
        "precision": precision,
        "tune": position_of(tune),
        "optimizer": request.optimizer,
        "batch": str(batch),
        **({} if image is None else {"image": str(image)}),
    }
    return settled(source, recipe_of(turned), facts)


def _sizes(request: Request, data: Data) -> tuple[list[str], list[str]]:
    """The batches of an epoch, as code: a few full ones stand for all, then what is left over.

    Noise stands for the article's flowers, however little of it is trained on here.  There is one full batch at
    least: it is what the prediction is said to be of."""
    train, test = data.train, data.test or 0
    if data.kind == FAKE:
        train, test = article.TRAIN_IMAGES, article.TEST_IMAGES
    batch = request.predicted_batch
    return _some(max(train, batch), batch, 3), _some(test, batch, 2)


def _some(images: int, batch: int, most: int) -> list[str]:
    full, rest = divmod(images, batch)
    return [str(batch)] * min(full, most) + ([str(rest)] if rest else [])


def _script(request: Request, work: Work, tune: str) -> Script:
    """The program's parts without its data."""
    script = write_program(work)
    write_own(script, tune)
    script.imports |= {"import json", "import time"}
    script.constants.update(SEED=str(request.seed), LINES=str(MOST_LINES))
    lr = request.lr if request.lr is not None else _USUAL_LR.get(request.optimizer)
    if lr is not None:
        script.optimizer[:] = [_LR.sub(f"lr={lr!r}", line) for line in script.optimizer]
    script.model = [line for line in script.model if line != "model.train()"]
    if work.recipe["precision"] == "bf16":
        script.model.append("torch.set_default_dtype(torch.float32)  # of images")
    call = "model(images).logits" if work.source.library == HF else "model(images)"
    script.loss = [f"logits = {call}", "loss = nn.functional.cross_entropy(logits, labels)"]
    return script


def _rendered(script: Script, title: str, device: str, work: Work, counts: bool = False) -> str:
    for lines in (script.contexts, script.optimizer):
        lines[:] = [line.replace('"cuda"', "device.type") for line in lines]
    moved = "images.to(device), labels.to(device)"
    if work.recipe["precision"] == "bf16":
        moved = "images.to(device, torch.bfloat16), labels.to(device)"
    lines = _within(script.contexts, script.loss)
    forward = _indented(lines)
    step = _indented(_step(script, device, work.recipe["precision"]))
    parts = [
        wrapped_title(title),
        "\n".join(script.import_lines()),
        "\n".join((*_constants(script.constants), f'device = torch.device("{device}")')),
        "\n".join(("torch.manual_seed(SEED)", *script.settings)),
        *(f"\n{each}\n" for each in (_SAY, _PASS, *script.functions)),
        "\n".join(script.batch),
        "\n".join((*_within(script.build_contexts, script.build), *script.model)),
        "\n".join(script.optimizer),
        f"\n{_TRAIN.format(moved=moved, forward=forward, step=step)}\n",
        f"\n{_TEST.format(moved=moved, forward=forward)}\n",
        _EPOCHS,
        *([_COUNT.format(moved=moved, forward=indent("\n".join(lines), "    "))] if counts else []),
    ]
    text = wrapped("\n\n".join(part for part in parts if part.strip()) + "\n")
    ast.parse(text)
    return text


def _step(script: Script, device: str, precision: str) -> list[str]:
    """Backward and the step.  oneDNN computes fp16 gradients of convolutions by a reference, five times as slowly."""
    backward, *rest = script.step_lines()
    if device == "cpu" and precision == "amp-fp16":
        return [*_within(["torch.backends.mkldnn.flags(enabled=False)"], [backward]), *rest]
    return [backward, *rest]


def _constants(constants: dict[str, str]) -> list[str]:
    return [f"{', '.join(constants)} = {', '.join(constants.values())}"]


def _indented(lines: list[str]) -> str:
    return indent("\n".join(lines), "        ")


def _within(contexts: list[str], lines: list[str]) -> list[str]:
    return [f"with {', '.join(contexts)}:", indent("\n".join(lines), "    ")] if contexts else lines
