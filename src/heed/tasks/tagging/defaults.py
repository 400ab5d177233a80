"""Default settings of a tagger, by the size of its corpus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heed.models import MODELS
from heed.tasks.defaults import Choices, Chosen, CorpusStats, Machine, given_number, trained_model_choices, without

WORDS_READ, FEWEST_EPOCHS, MOST_EPOCHS = 2.5e6, 3, 25
"""Words that a training reads, over all epochs; and the limits of the number of epochs."""


def choose_tagger(stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
    """Choose a BiLSTM-CRF over words and characters, or settings for the user's kind of model."""
    kind = str(given.get("model.kind", "bilstm"))
    has_spans = stats.measured.get("spans", 1.0) > 0
    words = stats.measured.get("src_words", 20.0)
    batch = given_number(given, "training.tokens_per_batch", 800)
    per_epoch = max(1, round(stats.num_rows * (words + 1) / batch))
    eval_every = max(20, min(1000, per_epoch))
    epochs = round(min(MOST_EPOCHS, max(FEWEST_EPOCHS, WORDS_READ / max(stats.num_rows * words, 1))))
    of_words = kind in MODELS and MODELS[kind].reads_words
    vocab_size = (100_000, "all words; rarer ones are read by their characters") if of_words else (8000, "subwords")
    chosen: Chosen = {
        **trained_model_choices(stats, machine, given, vocab_size, eval_every),
        **(_of_words(given) if of_words else {}),
        "training.precision": ("float32", "recurrent layers are fastest in it on a CPU"),
        "model.kind": (kind, "a bidirectional LSTM over words and their characters"),
        "head.kind": ("crf", "tags depend on their neighbours") if has_spans else ("softmax", "tags without spans"),
        "training.tokens_per_batch": (batch, "small batches: a small corpus needs many updates"),
        "training.schedule": ("cosine", "the rate falls to 0 at the last update"),
        "training.max_steps": (max(200, epochs * per_epoch), f"about {epochs} epochs"),
        "training.lr": (3e-3, "peak, after the warm-up"),
        "training.warmup_steps": (100, "updates"),
        "training.label_smoothing": (0.0, "for calibrated probabilities"),
        "training.patience": (0, "scores improve until the rate is 0"),
        "training.stop_metric": ("entity_f1", "F1 of spans, as in the CoNLL shared tasks") if has_spans
        else ("tag_accuracy", "accuracy: the share of correct tags"),
    }  # fmt: skip
    if has_spans:
        why = "ends and single words have tags of their own; outputs are as in the file"
        chosen["data.scheme"] = ("iobes", why)
    return without(chosen, given)


def _of_words(given: Mapping[str, Any]) -> Chosen:
    """Settings of a model that reads whole words."""
    chosen: Chosen = {
        "data.lower_case": (True, "upper and lower case share word vectors; characters keep the difference"),
        "data.zero_digits": (True, "numbers share word vectors; characters keep the difference"),
        "tokenizer.kind": ("word", "tags belong to words"),
        "tokenizer.min_frequency": (1, "words that occur once are partly read as unknown"),
        "model.characters": ("cnn", "spelling shows what unknown words are"),
        "model.case_size": (10, "letter case, which the word vectors do not have"),
    }
    if given.get("data.mark_column") is not None:
        chosen["model.mark_size"] = (20, "the marks of data.mark_column")
    return chosen
