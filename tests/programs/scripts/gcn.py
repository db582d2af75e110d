"""torch_geometric: graph convolutions and attention over a random graph."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from measure import measured
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, global_mean_pool
from torch_geometric.utils import add_self_loops

NODES, EDGES, FEATURES, CLASSES = 2000, 8000, 64, 7


class Net(torch.nn.Module):
    def __init__(self, layer, **settings: object) -> None:
        super().__init__()
        self.first, self.second = layer(FEATURES, 128, **settings), layer(128, CLASSES, **settings)

    def forward(self, x, edges):
        return self.second(F.dropout(F.relu(self.first(x, edges)), training=self.training), edges)


def whole_graph(model: torch.nn.Module) -> None:
    data = Data(x=torch.randn(NODES, FEATURES), edge_index=torch.randint(0, NODES, (2, EDGES)), y=torch.randint(0, CLASSES, (NODES,)))
    data.train_mask = torch.rand(NODES) < 0.5
    data, model = data.to("cuda"), model.to("cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(3):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        F.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    right = out.argmax(-1)[~data.train_mask] == data.y[~data.train_mask]
    assert 0 <= int(right.sum()) <= int((~data.train_mask).sum())


def many_graphs(model: torch.nn.Module) -> None:
    graphs = [Data(x=torch.randn(20, FEATURES), edge_index=torch.randint(0, 20, (2, 60)), y=torch.tensor([i % 2])) for i in range(16)]
    model = model.to("cuda")
    for batch in DataLoader(graphs, batch_size=8):
        batch = batch.to("cuda")
        pooled = global_mean_pool(model(batch.x, batch.edge_index), batch.batch)
        assert pooled.shape[0] == 8, pooled.shape
        F.cross_entropy(pooled, batch.y).backward()


if __name__ == "__main__":
    torch.manual_seed(0)  # masks have as many ones as chance gives them
    with measured("gcn"):
        whole_graph(Net(GCNConv))
    with measured("gat"):
        whole_graph(Net(GATConv, heads=1))
    with measured("graphs"):
        many_graphs(Net(GCNConv))
    edges, _ = add_self_loops(torch.randint(0, 10, (2, 30), device="cuda"))
    assert edges.shape == (2, 40), edges.shape
