"""Default settings of a translation model, by the number of its sentence pairs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from heed.models import MODELS
from heed.tasks.defaults import (
    CPU_MINUTES,
    SCHEDULE,
    WARM_UP,
    Choices,
    Chosen,
    CorpusStats,
    Machine,
    given_number,
    held_out,
    num_heads,
    shorter_warm_up,
    tokens_per_epoch,
    trained_model_choices,
    updates_per_epoch,
    vocabulary,
    without,
)
from heed.tasks.translation.measured import Suited, similar, suited


@dataclass(frozen=True)
class Size:
    """Sizes for a corpus of at most `max_rows` pairs."""

    max_rows: int
    vocab_size: int
    d_model: int
    d_ff: int
    num_layers: int
    dropout: float
    joint: bool = True
    """One vocabulary for both sides, or one for each."""


# Quoted names are sections of docs/results/. On a GPU there is time for more passes, more dropout and larger models.
# These values were not compared, except the second line with a CPU's, on one GPU ("Multi30k in 80 seconds"), the 4,000
# pieces of the first line ("Small corpora: model size, batches, dropout and stopping") and the choice of joint
# vocabularies, which is the same as on a CPU.
SIZES = (
    Size(10_000, 4000, 256, 512, 3, 0.3),
    Size(60_000, 4000, 256, 1024, 3, 0.3, joint=False),
    Size(250_000, 8000, 256, 1024, 4, 0.2, joint=False),
    Size(1_000_000, 16000, 512, 2048, 6, 0.1),
    Size(1 << 62, 32000, 512, 2048, 6, 0.1),
)
# First line: vocabulary, dropout and depth were varied one at a time on 7,239 pairs, with twice the width; this smaller
# model is equal after 40 minutes, and better before (the same section). Second: in the same time it reads each pair
# three times as often as a larger model; compared on 29,000 pairs ("Multi30k en→de: a smaller model and the tokenised
# text"). Third: model, dropout and vocabularies were compared on 163,723 pairs, and the model and vocabularies together
# on 330,000 ("Japanese: 330,000 pairs"). A vocabulary for each side was better than a joint one on 29,000, 163,723 and
# 30,782 pairs, and equal on the 7,239 ("Separate vocabularies and model size on three corpora"). The last line is
# extrapolated.
CPU_SIZES = (
    Size(10_000, 4000, 128, 256, 4, 0.2),
    Size(60_000, 4000, 128, 256, 4, 0.2, joint=False),
    Size(1_000_000, 8000, 128, 256, 4, 0.1, joint=False),
    Size(1 << 62, 32000, 256, 1024, 4, 0.1),
)
RATES = ((128, 4e-3, 800), (256, 2e-3, 400), (1 << 62, 7e-4, 4000))
"""Largest width, peak learning rate, and warm-up updates. 2e-3 for 256 was compared with 1e-3 on 7,239 pairs ("Batch
size with 7,239 pairs"); the others were not compared."""
FEW_UPDATES, FEWEST_COMPARED, FAST_RATE = 2500, 277, 6.5e-3
"""Most updates for which Muon is better in equal time, the fewest that were compared, and Muon's peak rate ("Short
trainings")."""
FAST_WARM_UPS = ((1200, 100), (FEW_UPDATES, 300))
"""Warm-up updates of Muon, for at most so many updates."""
FEWEST_VALIDATIONS, PATIENT_UPDATES = 10, 2000
"""Validations and updates for which training continues without a better score; 2,000 updates are twice the span of the
moving average. With a small corpus, ten validations are fewer updates, and end the training 2 BLEU too early on 7,239
pairs ("Early stopping")."""
ROWS_PER_VALIDATED = 12
"""Rows trained on, at least, for each row of a validation, which then takes about a tenth of the time: with 2,000 and
1,014 captions, to validate a row took 1.3 times as long as to train on one ("2,000 captions")."""
TWO_ALIGNERS = 10_000
"""Most pairs whose phrases come from the links of two aligners: better on 5,865 and 10,000 pairs, worse on 30,782
("Phrases of two aligners, and careful tuning")."""
WORD_CLASSES = 30_000
"""Most pairs whose phrases are also scored by a model of word classes: no more were compared ("A model of word
classes")."""
LANGUAGE_REASON = "by the name of its column, or its script"
SMALLEST_BATCH, FEWEST_UPDATES = 1024, 250
"""Minimum tokens per batch and updates per epoch: with fewer updates, training takes longer ("Batch size with 7,239
pairs"; "Batch size and dropout", 29,000 pairs)."""


def size_for(num_rows: int, on_cpu: bool = False) -> Size:
    """The sizes for a corpus of this number of pairs."""
    return next(size for size in (CPU_SIZES if on_cpu else SIZES) if num_rows <= size.max_rows)


def choose_translation(stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
    """Choose a Transformer, or phrases, for this corpus and machine, around the keys `given`."""
    kind = given.get("model.kind")
    if kind in MODELS and MODELS[kind].count_based:
        shared = _SCORED if given.get("training.scorer") and machine.device == "cpu" else {}
        return without({**_counted(stats, given, str(kind), "given"), **shared}, given)
    best = _suited(stats, machine, given) if kind is None else "transformer"
    if best != "transformer":
        are_known = similar(stats.num_all, stats.characters_per_row)
        better = "better on similar corpora, see below" if are_known else "better with so few pairs (measured)"
        why = "for training.scorer" if given.get("training.scorer") else better
        counted = _counted(stats, given, "phrase_based", why)
        scored = given.get("training.scorer", best == "both")
        shared = _SCORED if scored and machine.device == "cpu" else {}
        return without({**counted, **shared}, given)
    on_cpu = machine.device == "cpu"
    size = size_for(stats.num_all, on_cpu)
    pairs = f"{stats.num_all:,} pairs"
    is_smaller = size.d_model < size_for(stats.num_all).d_model
    why_shape = f"{pairs}; small, to train fast on a CPU (measured)" if is_smaller else pairs
    d_model = given_number(given, "model.d_model", size.d_model)
    lr, warmup_steps = next((lr, updates) for widest, lr, updates in RATES if d_model <= widest)
    vocab_size = vocabulary(given, size.vocab_size, pairs)
    tokens = tokens_per_epoch(stats, given, given_number(given, "tokenizer.vocab_size", vocab_size[0]))
    tokens_per_batch = _batch_size(tokens / machine.num_processes, 4096 if on_cpu else 16384)
    tokens_per_update = machine.num_processes * given_number(given, "training.tokens_per_batch", tokens_per_batch)
    epoch = updates_per_epoch(tokens, given, tokens_per_update)
    every = _updates_between_validations(stats, epoch)
    eval_every = given_number(given, "training.eval_every", every)
    chosen: Chosen = {
        **trained_model_choices(stats, machine, given, vocab_size, every),
        **_rare_validations(every, epoch),
        **{f"data.{side}_lang": (code, LANGUAGE_REASON) for side, code in stats.languages.items() if code},
        "model.kind": ("transformer", "the usual choice; compare --model.kind=phrase_based, if pairs are few"),
        "model.d_model": (d_model, why_shape),
        "model.d_ff": (size.d_ff * d_model // size.d_model, "inside the feed-forward layers"),
        "model.num_heads": (num_heads(d_model), "heads of about 64 features"),
        "model.num_encoder_layers": (size.num_layers, pairs),
        "model.num_decoder_layers": (size.num_layers, "as many as in the encoder"),
        "model.norm": ("pre", 'learns faster than "post" (measured)'),
        "model.dropout": (size.dropout, f"{pairs}: more dropout for a smaller corpus"),
        "training.tokens_per_batch": (tokens_per_batch, "many updates in an epoch (measured)"),
        "training.lr": (lr, "peak, after the warm-up; higher for a narrow model"),
        "training.warmup_steps": (warmup_steps, "updates"),
        "training.patience": (
            max(FEWEST_VALIDATIONS, math.ceil(PATIENT_UPDATES / eval_every)),
            f"validations without a better score end the training, after at least {PATIENT_UPDATES:,} updates",
        ),
        "training.stop_metric": ("bleu", "still improves when the loss no longer falls"),
        "decoding.beam_size": (5, "wider beams gain little (measured)"),
        "decoding.length_norm": ("mean", "outputs of small models are too short otherwise (measured)"),
        "decoding.length_penalty": (1.5, "within 0.3 BLEU of the best on three models (measured)"),
        **_max_ratio(stats, given),
    }  # fmt: skip
    return without(chosen, given, any_kind=_separate_vocabularies(size, given))


def _updates_between_validations(stats: CorpusStats, epoch: int) -> int:
    """Those of an epoch, or more where the validation set is large for the training data."""
    num_valid = stats.measured.get("num_validation", 0)
    return min(
        max(epoch, 1000), math.ceil(epoch * max(1.0, ROWS_PER_VALIDATED * num_valid / max(1, stats.num_in_epoch)))
    )


def _rare_validations(every: int, epoch: int) -> Chosen:
    """Why validations are rarer than epochs; empty if they are not."""
    why = "so that validations take about a tenth of the time (measured)"
    return {"training.eval_every": (every, why)} if every > epoch else {}


def choose_schedule(recipe: Any, num_updates: float, free: Collection[str]) -> Chosen:
    """Choose the schedule of a training of so few updates. `free`: the keys that may be changed.

    Muon was compared with Adam for narrow Transformers only.
    """
    model, training = recipe.model, recipe.training
    is_compared = model.kind == "transformer" and model.d_model <= RATES[0][0] and training.parallel == "data"
    if num_updates > FEW_UPDATES or not is_compared or not all(key in free for key in SCHEDULE):
        return shorter_warm_up(training.warmup_steps, num_updates, free)
    why = f"better than Adam in so few updates: about {num_updates:,.0f}"
    steps = next(steps for most, steps in FAST_WARM_UPS if num_updates <= most)
    return {
        "training.optimizer": ("muon", f"{why} (measured)" if num_updates >= FEWEST_COMPARED else why),
        "training.lr": (FAST_RATE, "peak, after the warm-up"),
        WARM_UP: (steps, "updates"),
        **shorter_warm_up(steps, num_updates, free),
    }


_LONGEST_WORD, _LONGEST_SEGMENT = 12, 8
"""Mean number of characters of a word, above which a text is written without spaces between words; and of characters
for each space in a script without them, above which it is not segmented into words: more than for segmented words,
and fewer than in the phrases between the spaces of Burmese."""
_NEUTRAL = ("training.max_minutes", "training.scorer")
"""Settings that say nothing about the kind of model."""


def _suited(stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Suited:
    """What translates best if nobody names a model: phrases only on a CPU, where they are clearly better, without tags;
    or for a scorer that is given.

    A setting of a model, its tokenizer, training or search is meant for a neural model.
    """
    tables = ("model.", "tokenizer.", "training.", "decoding.")
    is_set_up = any(key.startswith(tables) for key in given if key not in _NEUTRAL)
    has_tags = any(given.get(key) for key in ("data.tag", "data.valid_tag", "data.default_tag")) or any(
        isinstance(part, Mapping) and part.get("tag") for part in given.get("data.parts", ())
    )
    if given.get("training.scorer"):
        return "both"
    is_possible = machine.device == "cpu" and machine.num_processes == 1 and not (is_set_up or has_tags)
    return suited(stats.num_all, stats.characters_per_row) if is_possible and has_spaces(stats) else "transformer"


_SCORED: Chosen = {
    "training.scorer": ("transformer", "scores what phrases propose: better still on similar corpora"),
    "training.max_minutes": (CPU_MINUTES, "for both; --max-time changes it"),
}
"""Choices for phrases with a scorer."""


def has_spaces(stats: CorpusStats) -> bool:
    """Whether both sides are written with spaces between words."""
    return all(_has_spaces(stats.measured, side) for side in ("src", "tgt"))


def _has_spaces(measured: Mapping[str, float], side: str) -> bool:
    """Whether a side is. In a script without spaces, a short line counts as one word, although it may be a sentence."""
    words, characters, unspaced = (measured.get(f"{side}_{name}", 0.0) for name in ("words", "characters", "unspaced"))
    return characters <= (_LONGEST_SEGMENT * (words - 1) if unspaced > 0.5 else _LONGEST_WORD * words)


def _counted(stats: CorpusStats, given: Mapping[str, Any], kind: str, why: str) -> Chosen:
    """Choices for a translator that is estimated from counts: one vocabulary of all words."""
    few: Chosen = {}
    if kind == "phrase_based" and stats.num_all <= WORD_CLASSES:
        few["model.word_classes"] = (100, "and a model of their sequences: better for few pairs (measured)")
    if kind == "phrase_based" and stats.num_all <= TWO_ALIGNERS and "model.aligner" not in given:
        few["model.second_aligner"] = ("hmm", "more phrases: better for few pairs (measured)")
    return {
        **held_out(stats, given),
        **{f"data.{side}_lang": (code, LANGUAGE_REASON) for side, code in stats.languages.items() if code},
        **few,
        "tokenizer.kind": ("open-word", "words; unknown ones are spelled, so that they can be copied"),
        "tokenizer.vocab_size": (500_000, "all words of both sides"),
        "tokenizer.min_frequency": (1, "all words"),
        "model.kind": (kind, why),
        "training.stop_metric": ("bleu", "the feature weights are tuned for it"),
        "decoding.beam_size": (100, "hypotheses kept per stack"),
    }


def _separate_vocabularies(size: Size, given: Mapping[str, Any]) -> Chosen:
    """A vocabulary for each side, and embeddings that fit; empty for a joint one. For any kind of model.

    Several target languages share words, and bytes are the same on both sides, except for tags.
    """
    is_byte, is_tagged = given.get("tokenizer.kind") == "byte", bool(given.get("data.tag"))
    wants_joint = is_byte or is_tagged or given.get("model.tie") == "all"
    if given.get("tokenizer.joint", size.joint or wants_joint) is not False:
        return {}
    separate: Chosen = {"tokenizer.joint": (False, "pieces for each side: better on such corpora (measured)")}
    if is_byte and not (is_tagged or given.get("data.parts")):
        return separate
    return {**separate, "model.tie": ("target", "each side has its own vocabulary")}


def _max_ratio(stats: CorpusStats, given: Mapping[str, Any]) -> Chosen:
    """Limit of the output length: in characters (up to four bytes each), two languages differ more than in subwords."""
    allowance = {"character": 2.5, "byte": 4.0}.get(str(given.get("tokenizer.kind")), 0.0)
    ratio = max(2.0, float(round(allowance * stats.growth)))
    return {"decoding.max_ratio": (ratio, "the target is longer in these units")} if ratio > 2 else {}


def _batch_size(tokens: float, largest: int) -> int:
    """The largest batch size with enough updates per epoch; sizes differ by a factor of two."""
    size = SMALLEST_BATCH
    while 2 * size <= largest and tokens >= 2 * size * FEWEST_UPDATES:
        size *= 2
    return size
