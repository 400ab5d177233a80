"""Default settings of a classifier, by the number and length of its texts and the machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heed.models import MODELS
from heed.tasks.defaults import (
    Choices,
    Chosen,
    CorpusStats,
    Machine,
    given_number,
    held_out,
    tokens_per_epoch,
    updates_per_epoch,
    vocabulary,
    without,
)

KINDS = ("label", "labels", "number")
CPU_MINUTES = 15.0
"""Default time limit on a CPU."""
LEAST_UPDATES = 100
"""Updates between validations: with fewer, a reader of a small corpus is given up before it has learned."""


_DOCUMENTS: Chosen = {
    "data.max_tokens": (2000, "the rest of a longer document is read by the linear model only"),
    "data.normaliser.strip_control": (False, "line breaks end sentences"),
}
_READERS = {
    1: ("cnn", "filters over short windows of tokens"),
    2: ("decomposable_attention", "each token is compared with the other text"),
}
"""The reader of one text, and of a pair."""
_POOLING = {
    "decomposable_attention": ("max", "the strongest comparison in each text"),
    "cnn": ("max", "the strongest window of each filter, as in the paper"),
    "elmo": ("concat", "the end of the text, the maximum and the mean, as in ULMFiT"),
    "bag": ("mean", "the mean of all vectors, as in the paper"),
}


def choose_classifier(stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
    """Choose a reader with a head and a linear model, around the keys `given`."""
    answer = next((kind for kind in KINDS if stats.measured.get(f"kind_{kind}")), "label")
    answer = str(given.get("data.answer", answer))
    reader, why = _READERS[2 if stats.measured.get("num_texts") == 2 else 1]
    kind = str(given.get("model.kind", reader))
    chosen: Chosen = {
        **_held_out(stats, given),
        "data.answer": (answer, f"{stats.measured.get('num_labels', 0):,.0f} different labels"),
        "training.stop_metric": (
            "log_loss",
            "the likelihood of both parts together, which varies less than the accuracy",
        ),
    }
    if kind in MODELS and MODELS[kind].count_based:
        words: Chosen = {
            "tokenizer.kind": ("byte", "not used by the model, which has n-grams of its own"),
            "model.kind": (kind, "given"),
        }
        return without({**chosen, **words}, given)
    why += "; --model.kind=linear is the linear model alone"
    chosen |= _neural(stats, machine, given, kind) | {"model.kind": (kind, why)}
    if kind in MODELS and MODELS[kind].source == "documents":
        chosen |= _DOCUMENTS
    return without(chosen, given)


def _held_out(stats: CorpusStats, given: Mapping[str, Any]) -> Chosen:
    """A tenth of the rows, at least 200 and at most 2,000, but at most a quarter."""
    if not held_out(stats, given):
        return {}
    number = max(1, min(2000, stats.num_rows // 4, max(200, stats.num_rows // 10)))
    return {"data.hold_out": (number, "rows for validation, held out of the training table")}


def _neural(stats: CorpusStats, machine: Machine, given: Mapping[str, Any], kind: str) -> Chosen:
    characters = stats.num_rows * stats.characters_per_row
    size = 8000 if characters < 2e7 else 16000
    vocab_size = vocabulary(given, size, f"{characters:,.0f} characters")
    tokens = tokens_per_epoch(stats, given, given_number(given, "tokenizer.vocab_size", vocab_size[0]))
    is_long = stats.characters_per_row > 600
    default = (8192 if is_long else 1024) if machine.device == "cpu" else 16384
    batch = given_number(given, "training.tokens_per_batch", default)
    eval_every = max(LEAST_UPDATES, updates_per_epoch(tokens, given, batch))
    chosen: Chosen = {
        "data.max_tokens": (512 if is_long else 256, "the rest of a longer text is read by the linear model only"),
        "tokenizer.kind": ("bpe", "byte-level: nothing is unknown"),
        "tokenizer.vocab_size": vocab_size,
        "head.pooling": _POOLING.get(kind, ("attention", "weights that are learned")),
        "training.precision": (machine.precision, machine.bfloat16_speed),
        "training.tokens_per_batch": (batch, "fits into memory, with enough updates"),
        "training.lr": (2e-3, "peak, after the warm-up"),
        "training.warmup_steps": (50, "updates"),
        "training.label_smoothing": (0.0, "for calibrated probabilities"),
        "training.eval_every": (
            eval_every,
            f"about once an epoch, at least {LEAST_UPDATES} updates: sooner, little is learned",
        ),
        "training.save_every": (eval_every, "with each validation"),
        "training.patience": (6, "validations without a better score end the training"),
        "training.max_epochs": (40, "passes over the data"),
        "training.average": ("ema", "averaged weights are better than the last ones"),
        "training.ema_decay": (0.99, "about the last hundred updates"),
    }
    if machine.device == "cpu":
        chosen["training.max_minutes"] = (CPU_MINUTES, "--max-time changes it")
    return chosen
