"""Models that count instead of learning by gradients. NumPy only."""
