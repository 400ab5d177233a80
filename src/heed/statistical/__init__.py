"""Count-based models: n-grams, word classes, LZ78 and caches, with NumPy only."""
