"""What do the choosers of all tasks count and decide alike?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heed.chooser.facts import Choices, Survey

CPU_MINUTES = 45.0
"""Less than an hour, which is what people wait for."""


def without(chosen: Mapping[str, tuple[Any, str]], given: Mapping[str, Any]) -> Choices:
    """The choices that are left when the user's own are taken out; another kind takes its whole table with it."""
    other_model = given.get("model.kind", chosen["model.kind"][0]) != chosen["model.kind"][0]
    left = {
        key: choice
        for key, choice in chosen.items()
        if key not in given and not (other_model and key.startswith("model.") and key != "model.kind")
    }
    return Choices({k: v for k, (v, _) in left.items()}, {k: reason for k, (_, reason) in left.items()})


def given_number(given: Mapping[str, Any], key: str, otherwise: int) -> int:
    """A number that the user chose, or the one that would be chosen; nonsense is the recipe's to refuse."""
    value = given.get(key, otherwise)
    return value if isinstance(value, int) and value > 0 else otherwise


def held_out(survey: Survey, given: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """How many lines to hold out for validation, where no validation data is given."""
    if any(given.get(f"data.valid_{part}") for part in ("src", "tgt", "pairs", "text")):  # as DataConfig.holds_out
        return {}
    number = max(1, min(1000, survey.num_rows // 4, max(20, survey.num_rows // 20)))
    return {"data.hold_out": (number, "lines for validation, taken out of the training data")}


def num_heads(d_model: int) -> int:
    """The number of heads of at least 64 features that divides `d_model`."""
    return next(heads for heads in range(max(1, d_model // 64), 0, -1) if d_model % heads == 0)


def characters_per_token(vocab_size: int, kind: str = "bpe", shortlist: int = 0) -> float:
    """An estimate before there is a tokenizer: measured on English, German and Swahili with byte-level BPE."""
    if kind in ("word", "char-bigram"):
        return 5.5 if kind == "word" else 4.2 if shortlist else 2.0
    if kind in ("byte", "character"):
        return 1.0
    return 3.0 if vocab_size < 3000 else 3.8 if vocab_size < 12000 else 4.5


def tokens_per_epoch(survey: Survey, given: Mapping[str, Any], vocab_size: int) -> float:
    shortlist = given_number(given, "tokenizer.shortlist", 0)
    per_token = characters_per_token(vocab_size, str(given.get("tokenizer.kind", "bpe")), shortlist)
    return survey.num_in_epoch * (survey.characters_per_row / per_token + 1)


def updates_per_epoch(tokens: float, given: Mapping[str, Any], tokens_per_update: int) -> int:
    return max(20, min(1000, round(tokens / (tokens_per_update * given_number(given, "training.accumulate", 1)))))


def vocabulary(given: Mapping[str, Any], num_subwords: int, corpus: str) -> tuple[int, str]:
    """The size of the vocabulary and why, for the kind of tokenizer that the user named."""
    kind = given.get("tokenizer.kind", "bpe")
    if kind in _VOCABULARIES:
        return _VOCABULARIES[kind]
    return num_subwords, f"{corpus}: the larger the text, the more pieces it fills"


_VOCABULARIES = {
    "word": (30_000, "the most frequent words; the others are unknown"),
    "char-bigram": (30_000, "words of the shortlist, and pairs of characters"),
    "character": (4000, "the most frequent characters; the others are unknown"),
    "byte": (260, "256 bytes and four that are special"),
}
