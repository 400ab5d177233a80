"""Captioning task: a sentence that describes an image."""
