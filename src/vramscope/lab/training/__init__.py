"""Trains a grid of cells for real, each in a process of its own, and predicts the memory of each."""
