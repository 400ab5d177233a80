"""Tagging: a label for each word, such as its part of speech, or spans of words, such as names."""
