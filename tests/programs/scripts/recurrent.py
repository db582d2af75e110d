"""LSTM over sentences of several lengths, and a GRU."""

from __future__ import annotations

import torch
from measure import bytes_of, measured, say
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Tagger(torch.nn.Module):
    def __init__(self, layer) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(1000, 64, padding_idx=0)
        self.layers = layer(64, 256, num_layers=2, batch_first=True, dropout=0.2, bidirectional=True)
        self.tags = torch.nn.Linear(512, 10)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.words(ids), lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.layers(packed)
        padded, seen = pad_packed_sequence(out, batch_first=True)
        assert seen.tolist() == lengths.tolist() and padded.shape[1] == lengths.max()
        return self.tags(padded)


def train(layer) -> None:
    model = Tagger(layer).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    lengths = torch.tensor([40, 12, 31, 25])
    for _ in range(3):
        ids = torch.randint(1, 1000, (4, 40), device="cuda")
        tags = torch.randint(0, 10, (4, 40), device="cuda")
        loss = torch.nn.functional.cross_entropy(model(ids, lengths).flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    say(f"{layer.__name__} model", parameter_bytes=bytes_of(model))


if __name__ == "__main__":
    for layer in (torch.nn.LSTM, torch.nn.GRU):
        with measured(layer.__name__):
            train(layer)
