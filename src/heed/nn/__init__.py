"""Layers, heads and states, and the contracts of models."""
