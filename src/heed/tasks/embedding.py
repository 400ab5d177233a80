"""Vectors of texts and words: pooling of the vectors of tokens, and nearest neighbours by cosine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heed.core.errors import DataError, UsageError
from heed.data.batch import collate, source_from_ids
from heed.decoding.scoring import forced_pass, in_length_order, require_short
from heed.nn.contract import Trace
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID
from heed.text.words import is_single_word

Floats = NDArray[np.float32]
Pooling = Literal["mean", "max", "first", "last"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)


@dataclass(frozen=True)
class TokenVectors:
    """The tokens of a text, as displayed, and their vectors [T, D]."""

    tokens: Sequence[str]
    vectors: Floats

    def pooled(self, pooling: Pooling = "mean") -> Floats:
        """One vector [D] of the text; zeros without a token."""
        if not len(self.vectors):
            return np.zeros(self.vectors.shape[1], dtype=np.float32)
        if pooling in ("first", "last"):
            pooled: Floats = self.vectors[0 if pooling == "first" else -1]
        else:
            pooled = self.vectors.mean(0) if pooling == "mean" else self.vectors.max(0)
        return pooled


@dataclass(frozen=True)
class TokenAttention:
    """The self-attention of a model on a text, of all heads of all layers."""

    names: Sequence[str]
    """Of the heads [K]: `encoder.0 head 1`, layers and heads counted from 0."""
    weights: Floats
    """[K, T, T]: from each token to each token of the text."""
    word_ids: Sequence[int | None]
    """The index of each token's word among those that white space separates."""


def encoder_attention(
    reader: Any, tokenizer: Tokenizer, texts: Sequence[str], device: torch.device
) -> list[TokenAttention]:
    """The self-attention of a reader on each text, without the begin and the end of the text."""

    def read(ids: Sequence[Sequence[int]], trace: Trace) -> None:
        reader.read(source_from_ids(ids, EOS_ID, PAD_ID).to(device), trace=trace)

    return _attention(read, int(getattr(reader, "num_added", 0)), tokenizer, texts)


def generator_attention(
    model: Any, tokenizer: Tokenizer, texts: Sequence[str], device: torch.device
) -> list[TokenAttention]:
    """The self-attention of a language model on each text, without the begin of the text."""

    def read(ids: Sequence[Sequence[int]], trace: Trace) -> None:
        batch = collate(None, ids, range(len(ids)), BOS_ID, EOS_ID, PAD_ID).to(device)
        forced_pass(model, None, batch.tgt_in, trace)

    return _attention(read, 1, tokenizer, texts)


@torch.inference_mode()
def _attention(
    read: Callable[[Sequence[Sequence[int]], Trace], None], first: int, tokenizer: Tokenizer, texts: Sequence[str]
) -> list[TokenAttention]:
    """The attention that `read` traces, between the tokens of each text, the first of which is at the place `first`."""
    ids = tokenizer.encode(texts)

    def of(rows: Sequence[int]) -> list[TokenAttention]:
        trace = Trace()
        read([ids[row] for row in rows], trace)
        layers = {name.removesuffix(".self"): each[0] for name, each in trace.weights.items() if name.endswith(".self")}
        if not layers:
            raise UsageError("the model has no self-attention: name a run with a Transformer.")
        names = [f"{name} head {head}" for name, weights in layers.items() for head in range(weights.shape[1])]
        weights = torch.cat([*layers.values()], dim=1).float().cpu().numpy()
        found = []
        for place, row in enumerate(rows):
            tokens = slice(first, first + len(ids[row]))
            found.append(
                TokenAttention(names, weights[place, :, tokens, tokens].copy(), tokenizer.word_ids(texts[row]))
            )
        return found

    return in_length_order([len(row) + 1 for row in ids], [0] * len(ids), of)


def require_pooling(pooling: str) -> None:
    """Raise UsageError for an unknown kind of pooling."""
    if pooling not in POOLINGS:
        raise UsageError(f"pooling must be {', '.join(POOLINGS[:-1])} or {POOLINGS[-1]}, got {pooling!r}.")


def encoder_vectors(
    reader: Any, tokenizer: Tokenizer, texts: Sequence[str], device: torch.device
) -> list[TokenVectors]:
    """The features of a reader at each token of each text, without the end of the text."""
    return vectors_of_ids(reader, tokenizer, tokenizer.encode(texts), device)


@torch.inference_mode()
def vectors_of_ids(
    reader: Any, tokenizer: Tokenizer, ids: Sequence[Sequence[int]], device: torch.device
) -> list[TokenVectors]:
    """The features of a reader at each token of encoded texts, without the ends of texts in and after them."""

    def read(ids: Sequence[Sequence[int]]) -> Tensor:
        features: Tensor = reader.read(source_from_ids(ids, EOS_ID, PAD_ID).to(device))
        return features

    return _vectors(read, tokenizer, ids)


@torch.inference_mode()
def generator_vectors(
    model: Any, tokenizer: Tokenizer, texts: Sequence[str], device: torch.device
) -> list[TokenVectors]:
    """The features of a language model after reading each token of each text."""

    def read(ids: Sequence[Sequence[int]]) -> Tensor:
        batch = collate(None, ids, range(len(ids)), BOS_ID, EOS_ID, PAD_ID).to(device)
        return forced_pass(model, None, batch.tgt_in)[:, 1:]  # the first follows the begin of the text

    return _vectors(read, tokenizer, tokenizer.encode(texts))


def _vectors(
    read: Callable[[Sequence[Sequence[int]]], Tensor], tokenizer: Tokenizer, ids: Sequence[Sequence[int]]
) -> list[TokenVectors]:
    require_short(max(map(len, ids), default=0), "embedded")

    def of(rows: Sequence[int]) -> list[TokenVectors]:
        chosen = [ids[row] for row in rows]
        features = read(chosen).float().cpu().numpy()
        return [_without_ends(tokenizer, row, table[: len(row)]) for row, table in zip(chosen, features, strict=True)]

    return in_length_order([len(row) + 1 for row in ids], [0] * len(ids), of)


def _without_ends(tokenizer: Tokenizer, ids: Sequence[int], features: Floats) -> TokenVectors:
    places = [place for place, id in enumerate(ids) if id != EOS_ID]
    return TokenVectors(tokenizer.pieces([ids[place] for place in places]), features[places])


def whole_words(tokenizer: Tokenizer) -> list[str]:
    """The pieces of a vocabulary that are words by themselves, in its order.

    Where pieces begin with the blank before a word, as in byte-level BPE, those that do; else those that a text of this
    word alone becomes.
    """
    vocabulary = tokenizer.vocabulary
    ids = range(len(vocabulary.pieces) - len(vocabulary.text_pieces) - len(vocabulary.tags), len(vocabulary.pieces))
    spelled = [tokenizer.decode([[id]])[0] for id in ids]
    begin_words = [text for text in spelled if text.startswith(" ")]
    words = [word for word in dict.fromkeys(map(str.strip, begin_words or spelled)) if is_single_word(word)]
    if begin_words:
        return words
    return [word for word, pieces in zip(words, tokenizer.encode(words), strict=True) if len(pieces) == 1]


class Neighbourhood:
    """Words with their vectors [V, D], and the nearest ones of a vector by cosine."""

    def __init__(self, words: Sequence[str], vectors: Floats) -> None:
        self.words = words
        self.unit = unit(vectors)
        self.places = {word: place for place, word in enumerate(words)}

    def nearest(self, vector: Floats, top: int, without: Sequence[str] = ()) -> list[tuple[str, float]]:
        """The `top` nearest words and their cosines, best first, without the given ones."""
        cosines = (self.unit @ unit(vector[None])[0]).clip(-1, 1)  # rounding takes some beyond
        cosines[[self.places[word] for word in without if word in self.places]] = -np.inf
        number = min(top, len(cosines))
        best = np.argpartition(-cosines, number - 1)[:number] if number else np.empty(0, dtype=np.int64)
        best = best[np.lexsort((best, -cosines[best]))]
        return [(self.words[place], float(cosines[place])) for place in best if np.isfinite(cosines[place])]


def unit(vectors: Floats) -> Floats:
    """The vectors [N, D] scaled to length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths), dtype=np.float32)


@dataclass(frozen=True)
class Expression:
    """A sum and difference of words, such as `king - man + woman`."""

    signs: Sequence[int]
    words: Sequence[str]

    def __str__(self) -> str:
        first, *rest = zip(self.signs, self.words, strict=True)
        begin = f"- {first[1]}" if first[0] < 0 else first[1]
        return " ".join([begin, *(f"{'+' if sign > 0 else '-'} {word}" for sign, word in rest)])


def expressions(words: Sequence[str]) -> list[Expression]:
    """Read words, of which those that `+` or `-` joins are one expression. Raises UsageError for a missing word."""
    found: list[tuple[list[int], list[str]]] = []
    sign = 0
    for word in (word for text in words for word in text.split()):
        if word in ("+", "-"):
            if sign:
                raise UsageError(f"expected a word after {'+' if sign > 0 else '-'}, got {word!r}.")
            sign = 1 if word == "+" else -1
            continue
        if not sign or not found:
            found.append(([], []))
        found[-1][0].append(sign or 1)
        found[-1][1].append(word)
        sign = 0
    if sign or not found:
        raise UsageError(
            f"expected a word{' after ' + ('+' if sign > 0 else '-') if sign else ''}, such as king - man + woman."
        )
    return [Expression(*each) for each in found]


def require_known(words: Sequence[str], vectors: Floats, are_unknown: Sequence[bool] = ()) -> None:
    """Raise DataError for words without a vector of their own. `are_unknown`: whether the tokenizer lacks a word."""
    lacking = are_unknown or [False] * len(words)
    rows = zip(words, vectors, lacking, strict=True)
    if unknown := [word for word, vector, is_unknown in rows if is_unknown or not vector.any()]:
        raise DataError(f"the run has no vector for {', '.join(unknown)}: not in its vocabulary.")
