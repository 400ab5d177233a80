"""Translation by rule: a dictionary from word alignments, and transfer rules written as data."""
