"""Which recipe fits this corpus and this machine, and why?

Rules by size of the corpus, device and measured speed of bfloat16. What is chosen is written into
`recipe.toml` with its reason, so that reruns and resumes obey the file and the machine is asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from heed.core.environment import available_memory_bytes, distributed, num_cpus
from heed.nn.device import best_precision
from heed.training.config import TrainingConfig


@dataclass(frozen=True)
class Survey:
    """What the chooser knows of a corpus."""

    num_rows: int
    characters_per_row: float
    """Characters of the longer side of a row, on average."""
    num_in_parts: int = 0
    """Rows of further parts of the training data, of which none is held out."""
    num_repeated: int = 0
    """Further rows of an epoch, because parts are repeated."""
    growth: float = 1.0
    """Characters of the target for each of the source, on average."""
    languages: Mapping[str, str] = field(default_factory=dict)
    """Of each side, by "src" and "tgt", the language that its column is named by, or its script tells; empty: none."""

    @property
    def num_all(self) -> int:
        """Rows of all parts."""
        return self.num_rows + self.num_in_parts

    @property
    def num_in_epoch(self) -> int:
        """Rows of all parts, as often as they come."""
        return self.num_all + self.num_repeated


@dataclass(frozen=True)
class Machine:
    """What the chooser knows of the machine."""

    device: str
    num_cpus: int
    memory_bytes: int
    precision: str
    bfloat16_gain: float
    num_processes: int = 1
    """That train together."""

    @staticmethod
    def here(device: torch.device) -> Machine:
        """Ask this machine; takes a tenth of a second."""
        precision, gain = best_precision(device)
        memory = available_memory_bytes()
        if device.type == "cuda":
            memory = torch.cuda.get_device_properties(device).total_memory
        return Machine(device.type, num_cpus(), memory, precision, gain, distributed().world_size)

    def render(self) -> str:
        """One line for a person."""
        where = f"{self.num_cpus} CPU cores" if self.device == "cpu" else self.device
        return f"{where}, {self.memory_bytes / 2**30:.0f} GiB, bfloat16 {self.bfloat16_gain:.1f} times float32"

    def advice(self, precision: str) -> str:
        """What to say of a recipe's precision: nothing, or that the other one is faster here.

        There are CPUs with instructions for bfloat16 that take twice the time of those for float32.
        """
        if precision != "bfloat16" or self.bfloat16_gain > 0.9:
            return ""
        return (
            f"bfloat16 has {self.bfloat16_gain:.1f} times the speed of float32 on this machine. "
            "--training.precision=float32 takes less time."
        )


@dataclass(frozen=True)
class Choices:
    """Values by recipe key, and the reason for each."""

    values: Mapping[str, Any]
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class Size:
    """What a corpus of at most so many pairs gets."""

    max_rows: int
    vocab_size: int
    d_model: int
    d_ff: int
    num_heads: int
    num_layers: int
    dropout: float


# First guesses, not measured. The last line has no bound.
SIZES = (
    Size(10_000, 2000, 256, 512, 4, 3, 0.3),
    Size(60_000, 4000, 256, 1024, 4, 3, 0.3),
    Size(250_000, 8000, 256, 1024, 4, 4, 0.2),
    Size(1_000_000, 16000, 512, 2048, 8, 6, 0.1),
    Size(1 << 62, 32000, 512, 2048, 8, 6, 0.1),
)
# A small model sees each pair three times as often in the same time. The first two lines are what docs/results.md
# measures (7,239 and 29,000 pairs), the third is a guess from the second.
CPU_SIZES = (
    Size(10_000, 2000, 256, 512, 4, 3, 0.3),
    Size(60_000, 4000, 128, 256, 2, 4, 0.2),
    Size(250_000, 8000, 128, 256, 2, 4, 0.1),
    Size(1_000_000, 16000, 256, 1024, 4, 4, 0.1),
    Size(1 << 62, 32000, 256, 1024, 4, 4, 0.1),
)
RATES = ((128, 4e-3, 800), (256, 2e-3, 400), (1 << 62, 7e-4, 4000))
"""Up to which width which peak of the learning rate, and the updates before it."""
LANGUAGE_TOLD = "by the name of its column, or its script"
CPU_MINUTES = 45.0
SMALLEST_BATCH, FEWEST_UPDATES = 1024, 250
"""Tokens of a batch, and updates in an epoch: with fewer a corpus takes longer (measured on 7,239 and 29,000 pairs)."""


def size_for(num_rows: int, on_cpu: bool = False) -> Size:
    """The line of the table for a corpus."""
    return next(size for size in (CPU_SIZES if on_cpu else SIZES) if num_rows <= size.max_rows)


def choose_translation(survey: Survey, machine: Machine, given: Mapping[str, Any]) -> Choices:
    """A Transformer for this corpus and machine. `given` are the keys that the user chose; the others fit them."""
    on_cpu = machine.device == "cpu"
    size = size_for(survey.num_all, on_cpu)
    pairs = f"{survey.num_all:,} pairs"
    why_shape = f"{pairs}; small, as a CPU has little time (docs/results.md)" if on_cpu else pairs
    d_model = _given(given, "model.d_model", size.d_model)
    lr, warmup_steps = next((lr, updates) for widest, lr, updates in RATES if d_model <= widest)
    vocab_size, why_size = _vocabulary(given, size.vocab_size, pairs)
    tokens = _tokens_per_epoch(survey, given, _given(given, "tokenizer.vocab_size", vocab_size))
    tokens_per_batch = _batch_for(tokens / machine.num_processes, 4096 if on_cpu else 16384)
    tokens_per_update = machine.num_processes * _given(given, "training.tokens_per_batch", tokens_per_batch)
    epoch = _updates_per_epoch(tokens, given, tokens_per_update)
    chosen: dict[str, tuple[Any, str]] = {
        **_held_out(survey, given),
        **{f"data.{side}_lang": (code, LANGUAGE_TOLD) for side, code in survey.languages.items() if code},
        "tokenizer.kind": ("bpe", "byte-level: any text comes back exactly, nothing is unknown"),
        "tokenizer.vocab_size": (vocab_size, why_size),
        "model.kind": ("transformer", "the usual choice; --model.kind=rnn_attention is the other"),
        "model.d_model": (d_model, why_shape),
        "model.d_ff": (size.d_ff * d_model // size.d_model, "inside the feed-forward layers"),
        "model.num_heads": (_num_heads(d_model), "heads of about 64 features"),
        "model.num_encoder_layers": (size.num_layers, pairs),
        "model.num_decoder_layers": (size.num_layers, "as many as in the encoder"),
        "model.norm": ("pre", "trains without a long warm-up"),
        "model.dropout": (size.dropout, f"{pairs}: the smaller the corpus, the more is dropped"),
        "training.tokens_per_batch": (tokens_per_batch, "many updates in an epoch (docs/results.md)"),
        "training.precision": (machine.precision, f"bfloat16 is {machine.bfloat16_gain:.1f} times as fast here"),
        "training.lr": (lr, "peak, after the warm-up; a narrow model takes more"),
        "training.warmup_steps": (warmup_steps, "updates"),
        "training.eval_every": (epoch, "about once an epoch, at least every 1,000 updates"),
        "training.save_every": (epoch, "as often as validated"),
        "training.patience": (10, "validations without a better score end the training"),
        "training.stop_metric": ("bleu", "what is wanted, and it goes on rising when the loss no longer falls"),
        "training.average": ("ema", "a mean of the last weights is steadier than the last ones"),
        "training.max_minutes": (CPU_MINUTES, "less than an hour of a CPU; --max-time changes it"),
        "decoding.beam_size": (5, "the usual width"),
        "decoding.length_norm": ("mean", "outputs of small models are too short otherwise (docs/results.md)"),
        "decoding.length_penalty": (1.5, "the same on three models' validation data"),
        **_longest_outputs(survey, given),
    }  # fmt: skip
    if not on_cpu:
        del chosen["training.max_minutes"]
    choices = _without(chosen, given)
    if given.get("tokenizer.joint") is False and given.get("tokenizer.kind") != "byte" and "model.tie" not in given:
        tie = ("target", "each side has its own vocabulary")
        return Choices({**choices.values, "model.tie": tie[0]}, {**choices.reasons, "model.tie": tie[1]})
    return choices


def _longest_outputs(survey: Survey, given: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """Subwords of two languages are about as many; their characters are not, and a character has up to four bytes."""
    allowance = {"character": 2.5, "byte": 4.0}.get(str(given.get("tokenizer.kind")), 0.0)
    ratio = max(2.0, float(round(allowance * survey.growth)))
    return {"decoding.max_ratio": (ratio, "the target is longer, counted in these")} if ratio > 2 else {}


@dataclass(frozen=True)
class LanguageSize:
    """What a language model of a text of at most so many characters gets."""

    max_characters: float
    vocab_size: int
    d_model: int
    num_layers: int
    context: int
    dropout: float


# First guesses, not yet measured. The last line has no bound.
LANGUAGE_SIZES = (
    LanguageSize(2e6, 1000, 256, 4, 128, 0.3),
    LanguageSize(2e7, 4000, 256, 4, 128, 0.2),
    LanguageSize(2e8, 8000, 512, 8, 256, 0.1),
    LanguageSize(2e9, 16000, 512, 12, 512, 0.1),
    LanguageSize(float("inf"), 32000, 768, 12, 1024, 0.0),
)
READ_AS = {"gpt": "windows", "one_layer": "windows", "rnn": "stream", "trellisnet": "stream", "feed_forward": "stream"}
"""How the text reaches a model that is trained; one that is counted takes it line by line."""
QUICK_MINUTES = 2.0
"""In less time no network gets far."""


def choose_language_model(survey: Survey, machine: Machine, given: Mapping[str, Any]) -> Choices:
    """A model of the kind that the user named, or a decoder-only Transformer; where time is very short, counts."""
    kind, why = _language_kind(given)
    if kind not in READ_AS:
        return _without(_counted(survey, given, kind, why), given)
    characters = survey.num_rows * (survey.characters_per_row + 1)
    size = next(size for size in LANGUAGE_SIZES if characters <= size.max_characters)
    on_cpu = machine.device == "cpu"
    d_model = _given(given, "model.d_model", min(size.d_model, 256) if on_cpu else size.d_model)
    context = _given(given, "training.context", _context_of(kind, min(size.context, 128) if on_cpu else size.context))
    text = f"{characters:,.0f} characters"
    vocab_size, why_size = _vocabulary(given, size.vocab_size, text)
    chosen: dict[str, tuple[Any, str]] = {
        **_held_out(survey, given),
        "data.text_as": (READ_AS[kind], _HOW_READ[READ_AS[kind]]),
        "data.keep_blank_lines": (given.get("data.text_as") != "lines", "where lines follow one another they say much"),
        "tokenizer.kind": ("bpe", "byte-level: any text comes back exactly, nothing is unknown"),
        "tokenizer.vocab_size": (vocab_size, why_size),
        "model.kind": (kind, why),
        **_language_shape(kind, size, d_model, context, on_cpu, text),
        "training.context": (context, "tokens that are read at once"),
        **_language_batches(survey, machine, given, kind, vocab_size, context),
        "training.precision": (machine.precision, f"bfloat16 is {machine.bfloat16_gain:.1f} times as fast here"),
        "training.lr": (1e-3 if d_model <= 256 else 5e-4, "peak, after the warm-up"),
        "training.warmup_steps": (200 if d_model <= 256 else 2000, "updates"),
        "training.label_smoothing": (0.0, "the probabilities are what is wanted"),
        "training.patience": (5, "validations without a better score end the training"),
        "training.stop_metric": ("perplexity", "what a language model is measured by"),
        "training.average": ("ema", "a mean of the last weights is steadier than the last ones"),
        "training.max_minutes": (CPU_MINUTES, "less than an hour of a CPU; --max-time changes it"),
    }  # fmt: skip
    if not on_cpu:
        del chosen["training.max_minutes"]
    return _without(chosen, given)


def _counted(survey: Survey, given: Mapping[str, Any], kind: str, why: str) -> dict[str, tuple[Any, str]]:
    """What fits a model that is counted: line by line, by words, but for the one whose phrases are of characters."""
    tokenizer: dict[str, tuple[Any, str]] = {
        "tokenizer.kind": ("word", "counting models are compared per word"),
        "tokenizer.vocab_size": (50_000, "the most frequent words; the others are unknown"),
        "tokenizer.min_frequency": (1, "every word counts"),
    }
    if kind == "lz78":
        tokenizer = {"tokenizer.kind": ("byte", "a phrase of words hardly comes again")}
    return {
        **_held_out(survey, given),
        "data.max_tokens": (100_000, "counts take lines of any length"),
        **tokenizer,
        "model.kind": (kind, why),
        "training.stop_metric": ("perplexity", "what a language model is measured by"),
    }


_HOW_READ = {
    "windows": "each window of tokens stands alone, as this model's context has an end",
    "stream": "the state is carried from each segment to the next",
}


def _language_kind(given: Mapping[str, Any]) -> tuple[str, str]:
    minutes = given.get("training.max_minutes")
    if "model.kind" in given:
        return str(given["model.kind"]), "as you said"
    if isinstance(minutes, float | int) and 0 < minutes < QUICK_MINUTES:
        return "ngram", "counted in seconds: there is no time for training a network"
    return "gpt", "a decoder-only Transformer; --model.kind=rnn is a recurrent one, other kinds are counted"


def _context_of(kind: str, wanted: int) -> int:
    """Back-propagation through time is cut sooner: a recurrent model remembers beyond its segment."""
    return 70 if READ_AS[kind] == "stream" else wanted


def _language_shape(
    kind: str, size: LanguageSize, d_model: int, context: int, on_cpu: bool, text: str
) -> dict[str, tuple[Any, str]]:
    """The sizes of a model; of the kinds that are for study, their own."""
    dropout = (size.dropout, f"{text}: the smaller the text, the more is dropped")
    if kind == "gpt":
        return {
            "model.d_model": (d_model, text),
            "model.d_ff": (4 * d_model, "four times d_model"),
            "model.num_heads": (_num_heads(d_model), "heads of about 64 features"),
            "model.num_layers": (min(size.num_layers, 4) if on_cpu else size.num_layers, text),
            "model.max_len": (context, "as many positions as the context has tokens"),
            "model.dropout": dropout,
            "model.attention_dropout": dropout,
        }
    if kind == "rnn":
        return {
            "model.d_model": (d_model, text),
            "model.hidden_size": (2 * d_model, "twice d_model"),
            "model.dropout": dropout,
        }
    return {"model.max_len": (context, "as many as the context has tokens")} if kind == "one_layer" else {}


def _language_batches(
    survey: Survey, machine: Machine, given: Mapping[str, Any], kind: str, vocab_size: int, context: int
) -> dict[str, tuple[Any, str]]:
    """How much is read for an update, and how often is validated."""
    vocab_size, processes = _given(given, "tokenizer.vocab_size", vocab_size), machine.num_processes
    tokens_per_batch = _given(given, "training.tokens_per_batch", 2048 if machine.device == "cpu" else 16384)
    streams = _given(given, "training.num_streams", -(-32 // processes) * processes)
    found: dict[str, tuple[Any, str]] = {}
    if READ_AS[kind] == "stream":
        found["training.num_streams"] = (streams, "parallel places of the text")
        tokens_per_update = streams * context
    else:
        found["training.tokens_per_batch"] = (tokens_per_batch, "fits the memory, and updates often enough")
        tokens_per_update = processes * tokens_per_batch
    epoch = _updates_per_epoch(_tokens_per_epoch(survey, given, vocab_size), given, tokens_per_update)
    found["training.eval_every"] = (epoch, "about once an epoch, at least every 1,000 updates")
    found["training.save_every"] = (epoch, "as often as validated")
    return found


Chooser = Callable[[Survey, Machine, Mapping[str, Any]], Choices]
CHOOSERS: Mapping[str, Chooser] = {"translation": choose_translation, "language-model": choose_language_model}


def fine_tuned(
    choose: Chooser, survey: Survey, machine: Machine, trained: Mapping[str, Any], given: Mapping[str, Any]
) -> Choices:
    """The choices when training begins with the weights of a run: its model, read as it was, and a lower rate.

    `trained` are the tables of that run's recipe. The other choices fit what comes from it, but for its model's sizes;
    a translator's dropout is chosen for the new data.
    """
    inherited = {key: value for key, value in _inherited(trained, given).items() if key not in given}
    fitted = {key: value for key, value in inherited.items() if key == "model.kind" or not key.startswith("model.")}
    choices = choose(survey, machine, {**fitted, **given})
    anew = {"model.dropout"} & set(choices.values) if trained["task"] == "translation" else set()
    inherited = {key: value for key, value in inherited.items() if key not in anew}
    values = {key: value for key, value in choices.values.items() if key in anew or not key.startswith("model.")}
    reasons = {key: choices.reasons[key] for key in values} | dict.fromkeys(inherited, "as in --init")
    if "training.lr" in inherited:
        reasons["training.lr"] = "a quarter of the rate of --init"
    return Choices(values | inherited, reasons)


_OF_THE_RATE = (
    "optimizer", "schedule", "lr_decay", "decay_after", "clip_norm", "weight_decay", "beta1", "beta2", "epsilon",
)  # fmt: skip
"""What a learning rate is meant for: 20 is a rate of SGD, and ruins the weights with Adam."""


def _inherited_rate(trained: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A quarter of the rate of a run, with all that it is meant for; nothing where the user wants another of these."""
    training = trained["training"]
    if any(given.get(f"training.{name}", training[name]) != training[name] for name in ("optimizer", "schedule")):
        return {}
    usual = TrainingConfig().model_dump()
    unusual = {f"training.{name}": training[name] for name in _OF_THE_RATE if training[name] != usual[name]}
    if training["schedule"] == "noam":  # whose peak is in its warm-up
        unusual["training.warmup_steps"] = training["warmup_steps"]
    return {**unusual, "training.lr": training["lr"] / 4}


def _inherited(trained: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What the weights of a run ask for. A new vocabulary is of its kind, and of a size that fits the data."""
    keys = [f"{table}.{name}" for table in ("tokenizer", "model") for name in trained[table]]
    keys.remove("tokenizer.vocab_size")
    keys.append("data.normaliser")
    if trained["task"] == "language-model":
        keys += ["training.context", "training.num_streams"]
        if given.get("data.text_as") != "lines":  # lines that stand alone are never blank, and end in one way
            keys += ["data.text_as", "data.line_end", "data.keep_blank_lines"]
    values = {key: trained[table][name] for key in keys for table, name in [key.split(".")]}
    return {**values, **_inherited_rate(trained, given)}


def _without(chosen: Mapping[str, tuple[Any, str]], given: Mapping[str, Any]) -> Choices:
    """The choices that are left when the user's own are taken out; another kind takes its whole table with it."""
    other_model = given.get("model.kind", chosen["model.kind"][0]) != chosen["model.kind"][0]
    left = {
        key: choice
        for key, choice in chosen.items()
        if key not in given and not (other_model and key.startswith("model.") and key != "model.kind")
    }
    return Choices({k: v for k, (v, _) in left.items()}, {k: reason for k, (_, reason) in left.items()})


def _given(given: Mapping[str, Any], key: str, otherwise: int) -> int:
    """A number that the user chose, or the one that would be chosen; nonsense is the recipe's to refuse."""
    value = given.get(key, otherwise)
    return value if isinstance(value, int) and value > 0 else otherwise


def _held_out(survey: Survey, given: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """How many lines to hold out for validation, where no validation data is given."""
    if any(given.get(f"data.valid_{part}") for part in ("src", "tgt", "pairs", "text")):  # as DataConfig.holds_out
        return {}
    number = max(1, min(1000, survey.num_rows // 4, max(20, survey.num_rows // 20)))
    return {"data.hold_out": (number, "lines for validation, taken out of the training data")}


def _num_heads(d_model: int) -> int:
    """The number of heads of at least 64 features that divides `d_model`."""
    return next(heads for heads in range(max(1, d_model // 64), 0, -1) if d_model % heads == 0)


def characters_per_token(vocab_size: int, kind: str = "bpe") -> float:
    """An estimate before there is a tokenizer: measured on English, German and Swahili with byte-level BPE."""
    if kind in ("word", "char-bigram"):
        return 5.5 if kind == "word" else 2.0
    if kind in ("byte", "character"):
        return 1.0
    return 3.0 if vocab_size < 3000 else 3.8 if vocab_size < 12000 else 4.5


def _tokens_per_epoch(survey: Survey, given: Mapping[str, Any], vocab_size: int) -> float:
    per_token = characters_per_token(vocab_size, str(given.get("tokenizer.kind", "bpe")))
    return survey.num_in_epoch * (survey.characters_per_row / per_token + 1)


def _batch_for(tokens: float, largest: int) -> int:
    """The largest batch, of those twice as large as another, that makes updates enough of an epoch."""
    size = SMALLEST_BATCH
    while 2 * size <= largest and tokens >= 2 * size * FEWEST_UPDATES:
        size *= 2
    return size


def _updates_per_epoch(tokens: float, given: Mapping[str, Any], tokens_per_update: int) -> int:
    return max(20, min(1000, round(tokens / (tokens_per_update * _given(given, "training.accumulate", 1)))))


def _vocabulary(given: Mapping[str, Any], num_subwords: int, corpus: str) -> tuple[int, str]:
    """The size of the vocabulary and why, for the kind of tokenizer that the user named."""
    kind = given.get("tokenizer.kind", "bpe")
    if kind in _VOCABULARIES:
        return _VOCABULARIES[kind]
    return num_subwords, f"{corpus}: fewer pieces are seen more often each"


_VOCABULARIES = {
    "word": (30_000, "the most frequent words; the others are unknown"),
    "char-bigram": (30_000, "words of the shortlist, and pairs of characters"),
    "character": (4000, "the most frequent characters; the others are unknown"),
    "byte": (260, "256 bytes and four that are special"),
}
