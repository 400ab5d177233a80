"""Layers, heads and states, and the contract that makes one decoder serve every model."""
