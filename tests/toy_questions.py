"""Toy corpus of questions about who lives where, and the run of a tiny model that answers them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import heed

PEOPLE, PLACES = ["Ann", "Bob Ray", "Cem", "Dan Lee"], ["Rome", "New York", "Oslo", "La Paz"]

TINY: dict[str, Any] = {
    "task": "span", "model.kind": "bilstm", "model.d_model": 24, "model.hidden_size": 24,
    "model.character_features": 8, "model.dropout": 0.0, "head.hidden_size": 8, "training.tokens_per_batch": 400,
    "training.max_steps": 60, "training.eval_every": 30, "training.save_every": 30, "training.warmup_steps": 10,
    "training.lr": 2e-2, "data.hold_out": 40,
}  # fmt: skip
"""Recipe keys of a tiny model."""


def questions(seed: int = 0, number: int = 300, unanswered: float = 0.0) -> list[dict[str, Any]]:
    """Rows of a table: where one of two people lives, and a share of questions about somebody else."""
    dice = random.Random(seed)
    rows = []
    for index in range(number):
        (one, other, absent), (here, there) = dice.sample(PEOPLE, 3), dice.sample(PLACES, 2)
        context = f"{one} lives in {here}, house {index}. {other} went to {there}, house {dice.randrange(99)}."
        if dice.random() < unanswered:
            rows.append({"question": f"Where is {absent}?", "context": context, "answer": "", "start": ""})
        else:
            person, place = dice.choice([(one, here), (other, there)])
            row = {"question": f"Where is {person}?", "context": context, "answer": place}
            rows.append(row | {"start": context.index(place)})
    return rows


def write_questions(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """A file of JSON objects."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def tiny_reader(folder: Path, unanswered: float = 0.0, **changes: Any) -> Any:
    """The predictor of a trained run; `changes` are more keys, with `__` for the dot."""
    table = write_questions(folder / "questions.jsonl", questions(unanswered=unanswered))
    keys = TINY | {"data.table": str(table)} | {key.replace("__", "."): value for key, value in changes.items()}
    return heed.train(keys, folder / "run", device="cpu", quiet=True)
