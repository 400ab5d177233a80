"""The kinds of tokenizers that tests go through: those whose libraries are installed."""

from __future__ import annotations

from importlib.util import find_spec

from heed.text.tokenizers import TOKENIZERS

KINDS = [kind for kind in TOKENIZERS if kind != "sentencepiece" or find_spec("sentencepiece") is not None]
