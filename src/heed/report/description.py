"""What is this model, in a sentence, and whose methods are in it?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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
    "bigram": lambda model: "a bigram model with interpolated absolute discounting",
}
_TOKENIZERS = {
    "bpe": "byte-pair encoding", "unigram": "a unigram tokenizer", "word": "words", "character": "characters",
    "byte": "bytes", "char-bigram": "pairs of characters",
}  # fmt: skip
_MODEL_PAPERS = {
    "transformer": "the Transformer (Vaswani et al. 2017)",
    "rnn_attention": "attention over a recurrent encoder (Bahdanau et al. 2015)",
    "bigram": "absolute discounting (Ney, Essen & Kneser 1994)",
}
_TOKENIZER_PAPERS = {
    "bpe": "byte-pair encoding (Sennrich et al. 2016)",
    "unigram": "unigram subwords (Kudo 2018)",
}
_SCORE_PAPERS = "sacreBLEU (Post 2018); chrF (Popović 2015); TER (Snover et al. 2006); intervals (Koehn 2004)"


def direction(run: Run) -> str:
    """`en → de`; what is known of it."""
    data = run.recipe.data
    if run.recipe.task == "language-model":
        return data.tgt_lang
    return f"{data.src_lang or '?'} → {data.tgt_lang or '?'}" if data.src_lang or data.tgt_lang else ""


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


def _by_its_keys(model: Mapping[str, Any]) -> str:
    return f"a model of kind {model['kind']} (" + ", ".join(f"{k} {v}" for k, v in model.items() if k != "kind") + ")"


def methods(run: Run) -> str:
    """What to cite: the papers behind the model, the subwords and the scores."""
    kinds = run.recipe.model.kind, run.recipe.tokenizer.kind
    papers = [_MODEL_PAPERS.get(kinds[0], ""), _TOKENIZER_PAPERS.get(kinds[1], "")]
    if run.recipe.task == "translation":
        papers.append(_SCORE_PAPERS)
    return "; ".join(paper for paper in papers if paper)
