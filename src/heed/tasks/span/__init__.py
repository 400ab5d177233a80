"""Extractive answers: the span of a context that answers a question, or that a pronoun means."""
