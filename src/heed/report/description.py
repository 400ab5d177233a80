"""What is this model, in a sentence, and whose methods are in it?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heed.report.markdown import code
from heed.run import Run

_SENTENCES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "transformer": lambda model: (
        f"a Transformer encoder-decoder ({model['norm']}-norm) of {model['num_encoder_layers']} + "
        f"{model['num_decoder_layers']} layers, {model['d_model']} features, {model['num_heads']} heads and "
        f"{model['d_ff']:,} features inside the feed-forward layers"
    ),
    "rnn_attention": lambda model: (
        f"a recurrent encoder-decoder with additive attention: GRUs of {model['hidden_size']} features, embeddings of "
        f"{model['d_model']}"
    ),
    "rnn": lambda model: (
        f"a recurrent language model of {model['num_layers']} layers ({model['cell'].replace('_', ' ')}), "
        f"{model['hidden_size']} features each, and embeddings of {model['d_model']}"
    ),
    "feed_forward": lambda model: (
        f"a neural {model['order']}-gram model with {model['hidden_size']} hidden features and embeddings of "
        f"{model['d_model']}"
    ),
    "trellisnet": lambda model: (
        f"a trellis network of {model['num_levels']} levels, {model['hidden_size']} features and embeddings of "
        f"{model['d_model']}"
    ),
    "bigram": lambda model: "a bigram model with interpolated absolute discounting",
    "ngram": lambda model: _ngram(model),
    "class_ngram": lambda model: f"classes of words, {model['num_classes']:,} of them, and of these {_ngram(model)}",
    "lz78": lambda model: "the phrases of Lempel and Ziv's code of 1978",
    "one_layer": lambda model: (
        f"a Transformer with one hidden layer and one head: embeddings of {model['d_model']} features, queries, keys "
        f"and values of {model['hidden_size']}, {model['d_ff']:,} before the output, {model['max_len']} positions"
    ),
    "gpt": lambda model: (
        f"a decoder-only Transformer of {model['num_layers']} layers, {model['d_model']} features, "
        f"{model['num_heads']} heads, {model['d_ff']:,} features inside the feed-forward layers and "
        f"{model['max_len']} positions"
    ),
}
_SMOOTHINGS = {
    "kneser-ney": "modified Kneser-Ney smoothing", "witten-bell": "Witten-Bell smoothing",
    "absolute": "absolute discounting", "additive": "additive smoothing",
}  # fmt: skip
_TOKENIZERS = {
    "bpe": "byte-pair encoding", "unigram": "a unigram tokenizer", "word": "words", "character": "characters",
    "byte": "bytes", "char-bigram": "pairs of characters",
}  # fmt: skip
_MODEL_PAPERS = {
    "transformer": "the Transformer (Vaswani et al. 2017)",
    "rnn_attention": "attention over a recurrent encoder (Bahdanau et al. 2015)",
    "rnn": "the recurrent language model (Mikolov et al. 2010; Zaremba et al. 2014; Merity et al. 2018)",
    "feed_forward": "the neural n-gram model (Bengio et al. 2003)",
    "trellisnet": "the trellis network (Bai et al. 2019)",
    "bigram": "absolute discounting (Ney, Essen & Kneser 1994)",
    "ngram": "smoothed n-grams (Chen & Goodman 1998; Heafield et al. 2013)",
    "class_ngram": "class n-grams (Brown et al. 1992)",
    "lz78": "Lempel-Ziv as a predictor (Ziv & Lempel 1978; Langdon 1983)",
    "one_layer": "self-attention (Vaswani et al. 2017)",
    "gpt": "the decoder-only Transformer of GPT-2 (Radford et al. 2019)",
}
_TOKENIZER_PAPERS = {
    "bpe": "byte-pair encoding (Sennrich et al. 2016)",
    "unigram": "unigram subwords (Kudo 2018)",
}
_SCORE_PAPERS = "sacreBLEU (Post 2018); chrF (Popović 2015); TER (Snover et al. 2006); intervals (Koehn 2004)"


@dataclass(frozen=True)
class PartFacts:
    """A part of a translator's training data."""

    files: Sequence[str]
    languages: str
    tag: str
    repeat: int
    pairs: int | None
    """How many are trained on, each counted once; None where the run folder does not tell."""

    def told(self, mark: Callable[[str], str] = str, text: Callable[[str], str] = str) -> str:
        """`a.en and a.fr: en → fr, tag <2fr>, 200 pairs, each 4 times in an epoch`.

        `mark` writes names and tags, `text` the languages.
        """
        facts = [
            text(self.languages),
            f"tag {mark(f'<{self.tag}>')}" if self.tag else "",
            f"{self.pairs:,} pairs" if self.pairs is not None else "",
            f"each {self.repeat} times in an epoch" if self.repeat > 1 else "each once in an epoch",
        ]
        return f"{' and '.join(map(mark, self.files))}: {', '.join(fact for fact in facts if fact)}"


def parts(run: Run) -> list[PartFacts]:
    """Those of the training data; none where it is of one part."""
    data = run.recipe.data
    if run.recipe.task == "language-model" or not data.parts:
        return []
    every, numbers = data.all_parts, run.corpus.get("num_by_part", ())
    if len(numbers) != len(every):
        numbers = [None] * len(every)
    return [
        PartFacts(
            [Path(name).name for name in (part.src, part.tgt, part.pairs) if name],
            _direction(part.src_lang, part.tgt_lang), part.tag, part.repeat, number,
        ) for part, number in zip(every, numbers, strict=True)
    ]  # fmt: skip


def directions(run: Run) -> str:
    """`en → de, en → fr`: each that some part of the training data has; what is known of them."""
    data = run.recipe.data
    if run.recipe.task == "language-model":
        return data.tgt_lang
    found = [_direction(part.src_lang, part.tgt_lang) for part in data.all_parts]
    return ", ".join(dict.fromkeys(filter(None, found)))


def validated_on(run: Run, mark: Callable[[str], str] = str, text: Callable[[str], str] = str) -> str:
    """`en → de, tag <2de>`: which of several parts the validation data is like; empty where there is one."""
    data = run.recipe.data
    if not parts(run):
        return ""
    tag = data.tag_of_validation
    told = f"tag {mark(f'<{tag}>')}" if tag else "no tag" if data.tags else ""
    return ", ".join(filter(None, [text(_direction(*data.languages(tag))), told]))


def _direction(src_lang: str, tgt_lang: str) -> str:
    return f"{src_lang or '?'} → {tgt_lang or '?'}" if src_lang or tgt_lang else ""


def model_sentence(run: Run) -> str:
    """`a Transformer ... with byte-pair encoding, 4,000 pieces for both sides`."""
    model = run.recipe.model.model_dump()
    sentence = _SENTENCES.get(model["kind"], _by_its_keys)(model)
    kind = run.recipe.tokenizer.kind
    sizes = {side: len(tokenizer.vocabulary) for side, tokenizer in run.tokenizers.items()}
    if (run.folder / "tokenizer.json").exists():
        pieces = f"{sizes['tgt']:,} pieces" + (" for both sides" if len(sizes) > 1 else "")
    else:
        pieces = " and ".join(f"{size:,} pieces ({side})" for side, size in sizes.items())
    return f"{sentence}; {_TOKENIZERS.get(kind, kind)}, {pieces}"


def origin(run: Run) -> str:
    """`fine-tuned from base, with its vocabulary`; empty where nothing came from another run."""
    init, tokenizer_of = run.corpus.get("init", ""), run.corpus.get("tokenizer_of", "")
    vocabulary = f"the vocabulary of {code(tokenizer_of)}" if tokenizer_of else "a new vocabulary"
    if init:
        return f"fine-tuned from {code(init)}, with {'its vocabulary' if tokenizer_of == init else vocabulary}"
    return f"begun anew, with {vocabulary}" if tokenizer_of else ""


def _ngram(model: Mapping[str, Any]) -> str:
    """`a 5-gram model with interpolated modified Kneser-Ney smoothing and a cache of 500 words`."""
    if model["order"] == 0:
        return "the uniform model"
    way = "interpolated" if model["interpolate"] else "backed-off"
    cache = f" and a cache of {model['cache_size']:,} words" if model["cache_share"] else ""
    return f"a {model['order']}-gram model with {way} {_SMOOTHINGS[model['smoothing']]}{cache}"


def _by_its_keys(model: Mapping[str, Any]) -> str:
    return f"a model of kind {model['kind']} (" + ", ".join(f"{k} {v}" for k, v in model.items() if k != "kind") + ")"


def methods(run: Run) -> str:
    """What to cite: the papers behind the model, the subwords and the scores."""
    kinds = run.recipe.model.kind, run.recipe.tokenizer.kind
    papers = [_MODEL_PAPERS.get(kinds[0], ""), _TOKENIZER_PAPERS.get(kinds[1], "")]
    if run.recipe.task == "translation":
        papers.append(_SCORE_PAPERS)
    return "; ".join(paper for paper in papers if paper)
