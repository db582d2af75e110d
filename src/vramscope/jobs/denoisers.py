"""What the denoisers of diffusers take beside noisy images: one entry per class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Figures = Mapping[str, Any]
"""The figures of a denoiser's config."""


@dataclass(frozen=True, slots=True)
class Denoiser:
    """How a denoiser is called."""

    inputs: Callable[[Figures], Mapping[str, str]]
    """The keyword arguments of its forward beside the image and the timestep, and the code that makes each."""
    image: str = "hidden_states"
    """What its forward calls the noisy image."""
    pixels: int = 8
    """The side of an image for each unit of its input's side: 8 for the latents of a VAE."""
    text: int | None = None
    """How many tokens of text it usually gets; None: no text."""
    usual_side: int = 64
    """Where the config has no ``sample_size``."""
    packed: bool = False
    """It takes 2 × 2 patches of latents as a sequence of tokens."""


def _class_labels(classes: Any) -> dict[str, str]:
    return {"class_labels": f"torch.randint({classes}, (BATCH,), device=device)"} if classes else {}


def _states(width: Any) -> dict[str, str]:
    return {"encoder_hidden_states": f"torch.randn(BATCH, SEQ, {width}, device=device)"}


def _unet(figures: Figures) -> dict[str, str]:
    return _class_labels(figures.get("num_class_embeds"))


def _unet_with_text(figures: Figures) -> dict[str, str]:
    width = figures.get("encoder_hid_dim") or figures.get("cross_attention_dim") or 1280
    inputs = {**_states(width), **_class_labels(figures.get("num_class_embeds"))}
    if figures.get("addition_embed_type") == "text_time":
        embedding = figures["projection_class_embeddings_input_dim"] - 6 * figures["addition_time_embed_dim"]
        inputs["added_cond_kwargs"] = (
            f'{{"text_embeds": torch.randn(BATCH, {embedding}, device=device),'
            ' "time_ids": torch.ones(BATCH, 6, device=device)}'
        )
    return inputs


def _dit(figures: Figures) -> dict[str, str]:
    return _class_labels(figures["num_embeds_ada_norm"])


def _pixart(figures: Figures) -> dict[str, str]:
    width = figures.get("caption_channels") or figures["cross_attention_dim"]
    sizes = '{"resolution": None, "aspect_ratio": None}'
    if figures.get("use_additional_conditions") or figures.get("sample_size") == 128:
        ratio = "torch.ones(BATCH, 1, device=device)"
        sizes = f'{{"resolution": torch.ones(BATCH, 2, device=device), "aspect_ratio": {ratio}}}'
    return {**_states(width), "added_cond_kwargs": sizes}


def _sd3(figures: Figures) -> dict[str, str]:
    pooled = f"torch.randn(BATCH, {figures['pooled_projection_dim']}, device=device)"
    return {**_states(figures["joint_attention_dim"]), "pooled_projections": pooled}


def _flux(figures: Figures) -> dict[str, str]:
    guidance = {"guidance": "torch.ones(BATCH, device=device)"} if figures.get("guidance_embeds") else {}
    places = {
        "img_ids": "torch.zeros((IMAGE // 16) ** 2, 3, device=device)",
        "txt_ids": "torch.zeros(SEQ, 3, device=device)",
    }
    return {**_sd3(figures), **places, **guidance}


DENOISERS = {
    "UNet2DModel": Denoiser(_unet, image="sample", pixels=1),
    "UNet2DConditionModel": Denoiser(_unet_with_text, image="sample", text=77),
    "DiTTransformer2DModel": Denoiser(_dit, usual_side=32),
    "PixArtTransformer2DModel": Denoiser(_pixart, text=300, usual_side=128),
    "SD3Transformer2DModel": Denoiser(_sd3, text=333, usual_side=128),
    "FluxTransformer2DModel": Denoiser(_flux, text=512, usual_side=128, packed=True),
}
