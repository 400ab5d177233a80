"""Which Transformer, or other translator, for so many sentence pairs?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heed.tasks.defaults import (
    CPU_MINUTES,
    Choices,
    CorpusStats,
    Machine,
    given_number,
    held_out,
    num_heads,
    tokens_per_epoch,
    updates_per_epoch,
    vocabulary,
    without,
)


@dataclass(frozen=True)
class Size:
    """What a corpus of at most so many pairs gets."""

    max_rows: int
    vocab_size: int
    d_model: int
    d_ff: int
    num_layers: int
    dropout: float
    joint: bool = True
    """One vocabulary of so many pieces for both sides, or one for each."""


# Quoted names are sections of docs/results.md. A GPU has time for more passes, so for more dropout and larger models.
# These values are guesses, since no GPU was available, except the 4,000 pieces of the first line ("Small corpora: model
# size, batches, dropout and stopping") and the choice of joint vocabularies, which is as below. The last has no bound.
SIZES = (
    Size(10_000, 4000, 256, 512, 3, 0.3),
    Size(60_000, 4000, 256, 1024, 3, 0.3, joint=False),
    Size(250_000, 8000, 256, 1024, 4, 0.2, joint=False),
    Size(1_000_000, 16000, 512, 2048, 6, 0.1),
    Size(1 << 62, 32000, 512, 2048, 6, 0.1),
)
# A CPU has less time. First line: vocabulary, dropout and depth were varied one at a time on 7,239 pairs, with twice
# the width; this smaller model is equal there after 40 minutes, and ahead before (the same section). Second: in the
# same time it sees each pair three times as often as a larger model; compared on 29,000 pairs ("Multi30k en→de: a
# smaller model and the tokenised text"). Third: the small model, its dropout and its vocabularies on 163,723 pairs. A
# vocabulary for each side was better than a joint one on the last two and on 30,782 pairs, and no better on the 7,239
# ("Separate vocabularies and model size on three corpora"). The last two lines are guesses from these.
CPU_SIZES = (
    Size(10_000, 4000, 128, 256, 4, 0.2),
    Size(60_000, 4000, 128, 256, 4, 0.2, joint=False),
    Size(250_000, 8000, 128, 256, 4, 0.1, joint=False),
    Size(1_000_000, 16000, 256, 1024, 4, 0.1),
    Size(1 << 62, 32000, 256, 1024, 4, 0.1),
)
RATES = ((128, 4e-3, 800), (256, 2e-3, 400), (1 << 62, 7e-4, 4000))
"""Largest width, peak of the learning rate, and updates of warm-up. 2e-3 for 256 was compared with 1e-3 on 7,239 pairs
("Batch size with 7,239 pairs"); the others were not compared."""
FEWEST_VALIDATIONS, PATIENT_UPDATES = 10, 2000
"""Without a better score, training continues for both this many validations and this many updates, which is twice the
span of the moving average. With a small corpus ten validations are fewer updates ("Early stopping": on 7,239 pairs they
end the training 2 BLEU too early)."""
LANGUAGE_TOLD = "by the name of its column, or its script"
SMALLEST_BATCH, FEWEST_UPDATES = 1024, 250
"""Minimum tokens of a batch, and updates of an epoch: with fewer updates, a corpus takes longer to learn ("Batch size
with 7,239 pairs"; "Batch size and dropout", 29,000 pairs)."""


def size_for(num_rows: int, on_cpu: bool = False) -> Size:
    """The line of the table for a corpus."""
    return next(size for size in (CPU_SIZES if on_cpu else SIZES) if num_rows <= size.max_rows)


def choose_translation(stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
    """A Transformer for this corpus and machine. `given` are the keys that the user chose; the others fit them."""
    on_cpu = machine.device == "cpu"
    size = size_for(stats.num_all, on_cpu)
    pairs = f"{stats.num_all:,} pairs"
    is_smaller = size.d_model < size_for(stats.num_all).d_model
    why_shape = f"{pairs}; small, as a CPU has little time (docs/results.md)" if is_smaller else pairs
    d_model = given_number(given, "model.d_model", size.d_model)
    lr, warmup_steps = next((lr, updates) for widest, lr, updates in RATES if d_model <= widest)
    vocab_size, why_size = vocabulary(given, size.vocab_size, pairs)
    tokens = tokens_per_epoch(stats, given, given_number(given, "tokenizer.vocab_size", vocab_size))
    tokens_per_batch = _batch_for(tokens / machine.num_processes, 4096 if on_cpu else 16384)
    tokens_per_update = machine.num_processes * given_number(given, "training.tokens_per_batch", tokens_per_batch)
    epoch = updates_per_epoch(tokens, given, tokens_per_update)
    eval_every = given_number(given, "training.eval_every", epoch)
    chosen: dict[str, tuple[Any, str]] = {
        **held_out(stats, given),
        **{f"data.{side}_lang": (code, LANGUAGE_TOLD) for side, code in stats.languages.items() if code},
        "tokenizer.kind": ("bpe", "byte-level: any text comes back exactly, nothing is unknown"),
        "tokenizer.vocab_size": (vocab_size, why_size),
        "model.kind": ("transformer", "the usual choice; --model.kind=rnn_attention is the other"),
        "model.d_model": (d_model, why_shape),
        "model.d_ff": (size.d_ff * d_model // size.d_model, "inside the feed-forward layers"),
        "model.num_heads": (num_heads(d_model), "heads of about 64 features"),
        "model.num_encoder_layers": (size.num_layers, pairs),
        "model.num_decoder_layers": (size.num_layers, "as many as in the encoder"),
        "model.norm": ("pre", 'learns faster than "post" (docs/results.md)'),
        "model.dropout": (size.dropout, f"{pairs}: the smaller the corpus, the more is dropped"),
        "training.tokens_per_batch": (tokens_per_batch, "many updates in an epoch (docs/results.md)"),
        "training.precision": (machine.precision, machine.bfloat16_speed),
        "training.lr": (lr, "peak, after the warm-up; a narrow model takes more"),
        "training.warmup_steps": (warmup_steps, "updates"),
        "training.eval_every": (epoch, "about once an epoch, at least every 1,000 updates"),
        "training.save_every": (epoch, "as often as validated"),
        "training.patience": (
            max(FEWEST_VALIDATIONS, math.ceil(PATIENT_UPDATES / eval_every)),
            f"validations without a better score end the training; {PATIENT_UPDATES:,} updates at least",
        ),
        "training.stop_metric": ("bleu", "what is wanted, and it goes on rising when the loss no longer falls"),
        "training.average": ("ema", "a mean of the last weights is better than the last (docs/results.md)"),
        "training.max_minutes": (CPU_MINUTES, "less than an hour of a CPU; --max-time changes it"),
        "decoding.beam_size": (5, "wider ones gain little (docs/results.md)"),
        "decoding.length_norm": ("mean", "outputs of small models are too short otherwise (docs/results.md)"),
        "decoding.length_penalty": (1.5, "within 0.3 BLEU of the best on three models (docs/results.md)"),
        **_longest_outputs(stats, given),
    }  # fmt: skip
    if not on_cpu:
        del chosen["training.max_minutes"]
    choices = without(chosen, given)
    apart = {key: choice for key, choice in _apart(size, given).items() if key not in given}
    return Choices(
        {**choices.values, **{key: value for key, (value, _) in apart.items()}},
        {**choices.reasons, **{key: reason for key, (_, reason) in apart.items()}},
    )


def _apart(size: Size, given: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """A vocabulary for each side and embeddings to fit, for whichever kind of model; nothing where one serves both.

    Several target languages share what they have in common, and bytes are the same on both sides but for tags.
    """
    is_byte, is_tagged = given.get("tokenizer.kind") == "byte", bool(given.get("data.tag"))
    asks_for_one = is_byte or is_tagged or given.get("model.tie") == "all"
    if given.get("tokenizer.joint", size.joint or asks_for_one) is not False:
        return {}
    apart: dict[str, tuple[Any, str]] = {
        "tokenizer.joint": (False, "pieces for each side: better on such corpora (docs/results.md)")
    }
    if is_byte and not (is_tagged or given.get("data.parts")):
        return apart
    return {**apart, "model.tie": ("target", "each side has its own vocabulary")}


def _longest_outputs(stats: CorpusStats, given: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """Subwords of two languages are about as many; their characters are not, and a character has up to four bytes."""
    allowance = {"character": 2.5, "byte": 4.0}.get(str(given.get("tokenizer.kind")), 0.0)
    ratio = max(2.0, float(round(allowance * stats.growth)))
    return {"decoding.max_ratio": (ratio, "the target is longer, counted in these")} if ratio > 2 else {}


def _batch_for(tokens: float, largest: int) -> int:
    """The largest batch, of those twice as large as another, that makes updates enough of an epoch."""
    size = SMALLEST_BATCH
    while 2 * size <= largest and tokens >= 2 * size * FEWEST_UPDATES:
        size *= 2
    return size
