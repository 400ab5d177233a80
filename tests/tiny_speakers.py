"""Tiny decoder-only Transformers, trained on a toy text within a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toy import WORDS, unchecked_shapes, write_lines

import heed

LINES = [f"the {a} sees the {b} ." for a in WORDS for b in WORDS]
CHARACTERS = {
    "data.text_as": "windows", "data.line_end": "newline", "data.keep_blank_lines": True, "tokenizer.kind": "character",
}  # fmt: skip
"""A running text, character by character."""
WORDS_OF_STREAM = {"data.text_as": "windows", "data.line_end": "eos", "tokenizer.kind": "word"}
"""A running text of words, with an end of sentence after each line."""
BYTES_OF_LINES = {"data.text_as": "lines", "tokenizer.kind": "byte", "tokenizer.vocab_size": 260}
"""Independent lines, byte by byte."""


def train_speaker(folder: Path, keys: dict[str, Any], num_steps: int = 40, lines: list[str] = LINES) -> Path:
    """Train a tiny GPT on lines into `folder / "run"`; the text is `folder / "text"`."""
    text = write_lines(folder / "text", lines)
    tiny = {
        "task": "language-model", "data.text": str(text), "data.hold_out": 8, "tokenizer.min_frequency": 1,
        "tokenizer.vocab_size": 300, "model.kind": "gpt", "model.d_model": 32, "model.d_ff": 64, "model.num_heads": 2,
        "model.num_layers": 2, "model.max_len": 24, "model.dropout": 0.0, "model.attention_dropout": 0.0,
        "training.context": 24, "training.tokens_per_batch": 512, "training.lr": 1e-2, "training.warmup_steps": 5,
        "training.label_smoothing": 0.0, "training.precision": "float32", "training.max_steps": num_steps,
        "training.eval_every": num_steps, "training.save_every": max(1, num_steps // 2), "training.average": "none",
        "training.stop_metric": "perplexity", **keys,
    }  # fmt: skip
    with unchecked_shapes():
        heed.train(tiny, folder / "run", device="cpu", quiet=True)
    return folder / "run"
