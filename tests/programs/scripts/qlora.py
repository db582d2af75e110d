"""QLoRA: a small Llama from a folder in 4 bits, double quantised, with paged 8-bit AdamW."""

from __future__ import annotations

import bitsandbytes as bnb
import torch
from measure import bytes_of, measured, say
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM

CONFIG = LlamaConfig(
    vocab_size=2000, hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4
)


def main() -> None:
    LlamaForCausalLM(CONFIG).to(torch.bfloat16).save_pretrained("llama")
    quantised = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16
    )
    with measured("qlora"):
        model = AutoModelForCausalLM.from_pretrained("llama", quantization_config=quantised, device_map={"": 0}, dtype=torch.bfloat16)
        say("loaded", allocated_bytes=torch.cuda.memory_allocated(), parameter_bytes=bytes_of(model))
        model = prepare_model_for_kbit_training(model)
        model = get_peft_model(model, LoraConfig(r=8, target_modules="all-linear", task_type="CAUSAL_LM"))
        optimizer = bnb.optim.PagedAdamW8bit([p for p in model.parameters() if p.requires_grad], lr=1e-4)
        model.train()
        for _ in range(3):
            ids = torch.randint(0, CONFIG.vocab_size, (2, 128), device="cuda")
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            assert loss.item() == loss.item()


if __name__ == "__main__":
    main()
