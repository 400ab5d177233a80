"""Toy corpus of names and places in CoNLL columns, and the run of a tiny tagger on it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import heed

PEOPLE, PLACES = ["Ann", "Bob Ray", "Cem", "Dan Lee"], ["Rome", "New York", "Oslo"]
VERBS, ENDS = ["saw", "met", "left"], [".", "!"]

TINY: dict[str, Any] = {
    "task": "tagging", "model.d_model": 16, "model.hidden_size": 12, "model.character_features": 8,
    "model.dropout": 0.1, "training.tokens_per_batch": 128, "training.max_steps": 90, "training.eval_every": 45,
    "training.save_every": 45, "training.warmup_steps": 10, "training.lr": 2e-2, "data.hold_out": 20,
}  # fmt: skip
"""Recipe keys of a tiny tagger."""


def rows(seed: int = 0, num_sentences: int = 200) -> list[list[str]]:
    """Sentences of rows `token POS tag`, with IOB1 tags."""
    dice = random.Random(seed)
    sentences = []
    for _ in range(num_sentences):
        person, place = dice.choice(PEOPLE), dice.choice(PLACES)
        sentence = [f"{token} NNP I-PER" for token in person.split()]
        sentence += [f"{dice.choice(VERBS)} VB O", f"{dice.choice(['a', 'the'])}{dice.randrange(99)} CD O"]
        sentence += [f"{token} NNP I-LOC" for token in place.split()] + [f"{dice.choice(ENDS)} . O"]
        sentences.append(sentence)
    return sentences


def conll(sentences: list[list[str]]) -> str:
    """The content of a CoNLL file."""
    return "".join("".join(f"{row}\n" for row in sentence) + "\n" for sentence in sentences)


def write_conll(folder: Path, name: str = "train.conll", seed: int = 0, num_sentences: int = 200) -> Path:
    """A file of toy sentences."""
    path = folder / name
    path.write_text(conll(rows(seed, num_sentences)), encoding="utf-8")
    return path


def tiny_tagger(folder: Path, **changes: Any) -> Any:
    """The predictor of a trained run; `changes` are more keys, with `__` for the dot."""
    keys = TINY | {"data.conll": str(write_conll(folder))}
    keys |= {key.replace("__", "."): value for key, value in changes.items()}
    return heed.train(keys, folder / "run", device="cpu", quiet=True)
