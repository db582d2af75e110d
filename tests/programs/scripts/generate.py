"""transformers generate(): greedy, sampled, beam search, static cache."""

from __future__ import annotations

import torch
from measure import measured, say
from transformers import LlamaConfig, LlamaForCausalLM

NEW, PROMPT = 24, 16
CONFIG = LlamaConfig(
    vocab_size=1000, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    bos_token_id=1, eos_token_id=2, pad_token_id=0,
)  # fmt: skip
WAYS = {
    "greedy": {"do_sample": False},
    "sampled": {"do_sample": True, "top_k": 50, "top_p": 0.9, "temperature": 0.7},
    "beam": {"num_beams": 3, "do_sample": False},
    "static": {"do_sample": False, "cache_implementation": "static"},
}


def main() -> None:
    torch._dynamo.config.disable = True  # a static cache would be compiled; that's another test's matter
    model = LlamaForCausalLM(CONFIG).to("cuda", torch.bfloat16).eval()
    ids = torch.randint(3, 1000, (2, PROMPT), device="cuda")
    for name, way in WAYS.items():
        with measured(name):
            out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, **way)
        say(f"{name} tokens", new=out.shape[1] - PROMPT)


if __name__ == "__main__":
    main()
