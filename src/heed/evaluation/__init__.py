"""Evaluation of runs and other systems on test sets: scores, significance tests, leakage, and the log of scores."""
