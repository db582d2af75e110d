"""diffusers: a small conditional UNet learns to take noise away, under autocast."""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F
from diffusers import DDPMScheduler, UNet2DConditionModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from measure import bytes_of, measured, say


def train(precision: str) -> None:
    with measured(precision):
        unet = UNet2DConditionModel(
            sample_size=32,
            block_out_channels=(64, 128),
            layers_per_block=1,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            cross_attention_dim=64,
            attention_head_dim=8,
            norm_num_groups=16,
        ).cuda()
        noises = DDPMScheduler(num_train_timesteps=1000)
        optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4)
        schedule = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=1, num_training_steps=3)
        for _ in range(3):
            latents, text = torch.randn(4, 4, 32, 32, device="cuda"), torch.randn(4, 16, 64, device="cuda")
            noise = torch.randn_like(latents)
            timesteps = torch.randint(0, noises.config.num_train_timesteps, (4,), device="cuda").long()
            noisy = noises.add_noise(latents, noise, timesteps)
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "bf16"):
                loss = F.mse_loss(unet(noisy, timesteps, text).sample.float(), noise)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    say("model", parameter_bytes=bytes_of(unet))


if __name__ == "__main__":
    for precision in sys.argv[1:]:
        train(precision)
