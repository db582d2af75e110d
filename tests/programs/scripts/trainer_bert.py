"""transformers.Trainer fine-tunes a small BERT: mixed precision, accumulation, evaluation, checkpointing."""

from __future__ import annotations

import torch
from measure import bytes_of, measured, say
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

LENGTH = 128


class Random(Dataset):
    """Sentences of random ids, the last quarter of each one padding."""

    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        mask = torch.ones(LENGTH, dtype=torch.long)
        mask[-LENGTH // 4 :] = 0
        return {"input_ids": torch.randint(0, 1000, (LENGTH,)), "attention_mask": mask, "labels": torch.tensor(index % 2)}


def accuracy(prediction) -> dict[str, float]:
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main(name: str, **settings: object) -> None:
    config = BertConfig(vocab_size=1000, hidden_size=256, num_hidden_layers=6, num_attention_heads=4, intermediate_size=1024, num_labels=2)
    model = BertForSequenceClassification(config)
    arguments = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        gradient_accumulation_steps=2,
        max_steps=2,
        eval_strategy="steps",
        eval_steps=1,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        **settings,
    )
    arguments.set_logging(strategy="no")
    trainer = Trainer(model, arguments, train_dataset=Random(), eval_dataset=Random(), compute_metrics=accuracy)
    with measured(name):
        trainer.train()
    assert trainer.state.global_step == 2
    say("states", parameter_bytes=bytes_of(model))


if __name__ == "__main__":
    main("plain", bf16=True)
    main("checkpointed", bf16=True, gradient_checkpointing=True)
    main("scaled", fp16=True)
