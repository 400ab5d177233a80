"""Lossless compression with any language model: what the model predicts well takes few bits."""
