"""The built-in corpus: English-German sentence pairs from a grammar of heed's own, always marked "synthetic"."""

from __future__ import annotations

from heed.text.synthetic.corpus import Corpus, Draft, Pair, build_corpus, drafts, generate, is_held_out, write_corpus

__all__ = ["Corpus", "Draft", "Pair", "build_corpus", "drafts", "generate", "is_held_out", "write_corpus"]
