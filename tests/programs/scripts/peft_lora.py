"""LoRA on a small Llama, against training all of it."""

from __future__ import annotations

import torch
from measure import bytes_of, measured, say
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

CONFIG = LlamaConfig(
    vocab_size=2000, hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4
)


def train(model: torch.nn.Module) -> None:
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    for _ in range(3):
        ids = torch.randint(0, CONFIG.vocab_size, (2, 128), device="cuda")
        loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()


def main() -> None:
    with measured("full"):
        model = LlamaForCausalLM(CONFIG).to("cuda", torch.bfloat16)
        train(model)
        say("model", parameter_bytes=bytes_of(model))
    del model
    with measured("lora"):
        model = get_peft_model(LlamaForCausalLM(CONFIG).to("cuda", torch.bfloat16), LoraConfig(r=8, target_modules="all-linear"))
        train(model)


if __name__ == "__main__":
    main()
