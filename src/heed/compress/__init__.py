"""Lossless compression with any language model: well-predicted text takes few bits."""
