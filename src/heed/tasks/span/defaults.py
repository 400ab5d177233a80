"""Default settings for extractive answers, by the size of the corpus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heed.models import MODELS
from heed.tasks.defaults import Choices, Chosen, CorpusStats, Machine, given_number, trained_model_choices, without

QUESTIONS_READ, FEWEST_EPOCHS, MOST_EPOCHS = 60_000, 3, 15
"""Questions that a training reads, over all epochs; and the limits of the number of epochs."""
MOST_WORDS = 30
"""Words of the longest answer that is chosen without being asked for."""


def choose_span_reader(stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
    """Choose a reader of words and characters, or settings for the user's kind of model."""
    measured = stats.measured
    are_choices = measured.get("num_chosen", 0) > 0
    default = ("bilstm", "a bidirectional LSTM over words and their characters") if are_choices else (
        "attention_flow", "attention between the question and the context, over words and their characters"
    )  # fmt: skip
    kind = str(given.get("model.kind", default[0]))
    batch = given_number(given, "training.tokens_per_batch", 1024 if stats.num_rows < 5000 else 4096)
    per_epoch = max(1, round(stats.num_rows * 1.2 * (measured.get("text_words", 120.0) + 1) / batch))
    eval_every = max(20, min(1000, per_epoch))
    epochs = round(min(MOST_EPOCHS, max(FEWEST_EPOCHS, QUESTIONS_READ / max(stats.num_rows, 1))))
    of_words = kind in MODELS and MODELS[kind].reads_words
    vocab_size = (50_000, "all words; rarer ones are read by their characters") if of_words else (8000, "subwords")
    longest = round(min(MOST_WORDS, max(1, measured.get("answer_words", 20.0))))
    chosen: Chosen = {
        **trained_model_choices(stats, machine, given, vocab_size, eval_every),
        **(_of_words() if of_words else {}),
        "data.max_tokens": (384, "longer contexts are read in overlapping windows"),
        "training.precision": ("float32", "recurrent layers are fastest in it on a CPU"),
        "model.kind": (kind, default[1] if kind == default[0] else "given"),
        "head.max_words": (longest, "99 % of the answers are not longer"),
        "head.hidden_size": (50, "features of both ends of an answer"),
        "head.no_answer": (measured.get("num_unanswered", 0) > 0, _answered(measured)),
        "training.tokens_per_batch": (batch, "small batches: a small corpus needs many updates"),
        "training.schedule": ("cosine", "the rate falls to 0 at the last update"),
        "training.max_steps": (max(200, epochs * per_epoch), f"about {epochs} epochs"),
        "training.lr": (2e-3, "peak, after the warm-up"),
        "training.warmup_steps": (100, "updates"),
        "training.label_smoothing": (0.0, "for calibrated probabilities"),
        "training.patience": (0, "scores improve until the rate is 0"),
        "training.stop_metric": ("choice_f1", "the F1 of choices, as in GAP") if are_choices
        else ("answer_f1", "the F1 of tokens, as in SQuAD"),
    }  # fmt: skip
    return without(chosen, given)


def _answered(measured: Mapping[str, float]) -> str:
    number = measured.get("num_unanswered", 0)
    return f"{number:,.0f} questions have no answer" if number else "every question has an answer"


def _of_words() -> Chosen:
    """Settings of a model that reads whole words."""
    return {
        "data.lower_case": (True, "upper and lower case share word vectors; characters keep the difference"),
        "data.zero_digits": (True, "numbers share word vectors; characters keep the difference"),
        "tokenizer.kind": ("word", "answers are made of words"),
        "tokenizer.min_frequency": (2, "rarer words are read by their characters"),
        "model.characters": ("cnn", "spelling shows what unknown words are"),
        "model.case_size": (10, "letter case, which the word vectors do not have"),
        "model.mark_size": (20, "whether a word is in the question"),
        "model.hidden_size": (100, "features in each direction"),
        "model.dropout": (0.3, "learns faster than with 0.5 (measured)"),
    }
