"""Training a denoiser of diffusers: it predicts the noise in random images or latents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.errors import RecipeError
from vramscope.jobs.denoisers import DENOISERS, Denoiser
from vramscope.jobs.facts import Facts
from vramscope.jobs.tasks.models import write_model

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

_TIMESTEPS = 1000
"""Of the schedules that these models are trained with."""


def usual(facts: Facts) -> dict[str, str]:
    """Four images at a time of the size that the model was made for, and its usual text."""
    text = DENOISERS[facts.kind].text
    seq = {"seq": str(text)} if text else {}
    return {"batch": "4", "image": str(facts.image or 512), "precision": "fp32", **seq}


def write(script: Script, work: Work) -> None:
    """Writes the task's part of the program."""
    write_model(script, work)
    forward = write_inputs(script, work)
    denoiser = DENOISERS[work.facts.kind]
    script.imports.add("from torch import nn")
    script.batch[-1] = f'return inputs, torch.randn_like(inputs["{denoiser.image}"])'
    script.fetch = "inputs, noise = batch()"
    script.loss += [f"predicted = {forward}{_noise_of(work)}", _LOSS]


_LOSS = "loss = nn.functional.mse_loss(predicted.float(), noise.float())"


def write_inputs(script: Script, work: Work) -> str:
    """Writes a batch of noisy images, timesteps and what else the denoiser takes; the code of the forward."""
    denoiser = DENOISERS[work.facts.kind]
    script.constants.update(BATCH=work.recipe["batch"], IMAGE=work.recipe["image"])
    if denoiser.text:
        script.constants["SEQ"] = work.recipe["seq"]
    arguments = {
        denoiser.image: f"torch.randn({_shape(denoiser, work)}, device=device)",
        "timestep": f"torch.randint({_TIMESTEPS}, (BATCH,), device=device)",
        **denoiser.inputs(work.facts.settings["config"]),
    }
    lines = [f'    "{name}": {code},' for name, code in arguments.items()]
    script.batch += ["inputs = {", *lines, "}", "return inputs"]
    return "model(**inputs)"


def _shape(denoiser: Denoiser, work: Work) -> str:
    """Of the noisy images; RecipeError for a size that the autoencoder cannot shrink."""
    side, unit = work.recipe.number("image"), denoiser.pixels * (2 if denoiser.packed else 1)
    if side % unit:
        raise RecipeError(f"image: {work.source.text} takes sides that are multiples of {unit}, not {side}")
    if denoiser.packed:
        return f"BATCH, (IMAGE // {unit}) ** 2, {work.facts.channels}"
    length = "IMAGE" if unit == 1 else f"IMAGE // {unit}"
    return f"BATCH, {work.facts.channels}, {length}, {length}"


def _noise_of(work: Work) -> str:
    """The part of the output that is noise: some denoisers predict its variance, too."""
    channels, made = work.facts.channels, work.facts.settings["config"].get("out_channels")
    return f".sample[:, :{channels}]" if made and made > channels else ".sample"
