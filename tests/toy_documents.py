"""Toy reviews of several sentences, and a tiny classifier with hierarchical attention that reads them."""

from __future__ import annotations

import random
from pathlib import Path

import heed

GOOD, BAD = ["good", "great", "fine", "nice"], ["bad", "awful", "poor", "dull"]
REVIEW = "The Story was in a town. A good plot was great! It was the end"
TINY = {
    "model.kind": "hierarchical_attention", "model.d_model": 12, "model.hidden_size": 6, "head.linear": False,
    "tokenizer.vocab_size": 300, "training.tokens_per_batch": 512, "training.max_steps": 40, "training.lr": 0.02,
    "training.warmup_steps": 2, "training.eval_every": 20, "training.save_every": 20, "training.precision": "float32",
}  # fmt: skip


def review(source: random.Random, label: str) -> str:
    """Sentences of which one has the sentiment."""
    neutral = [f"The {source.choice(['film', 'story', 'actor'])} was in a town." for _ in range(source.randint(1, 3))]
    word = source.choice(GOOD if label == "pos" else BAD)
    neutral.insert(source.randint(0, len(neutral)), f"A {word} plot was {word}!")
    return source.choice([" ", "\n"]).join(neutral)


def write_reviews(path: Path, number: int, seed: int = 0) -> Path:
    """A table of reviews with their labels."""
    source = random.Random(seed)
    labels = [source.choice(["pos", "neg"]) for _ in range(number)]
    rows = [f'"{review(source, label)}",{label}' for label in labels]
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return path


def train_reader(folder: Path) -> Path:
    """The run folder of a classifier trained on `train.csv` in `folder`."""
    table = write_reviews(folder / "train.csv", 160)
    heed.train({**TINY, "task": "classification", "data.table": str(table)}, folder / "run", quiet=True)
    return folder / "run"
