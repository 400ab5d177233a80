"""How often does one token follow another, and how probable does that make it?

Interpolated absolute discounting (Ney, Essen & Kneser 1994): every seen pair gives up D of its count, and what a
context gives up is shared out by the frequency of the words alone.

    p(w | v) = max(c(v w) - D, 0) / c(v)  +  D · N1+(v ·) / c(v) · p(w)        D = n1 / (n1 + 2 n2)
    p(w)     = (c(w) + 1) / (N + V)

N1+(v ·) is the number of different words seen after v, n1 and n2 the numbers of pairs seen once and twice, N the
number of all pairs, V the number of words that can be predicted. After an unseen context, p(w | v) = p(w). Begin
of sentence and padding are never predicted: their probability is 0 and V leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]

_CHUNK = 100_000  # sentences counted at a time
_DISCOUNT = 0.5  # when no pair, or hardly any, was seen once or twice


@dataclass(frozen=True, eq=False)
class BigramCounts:
    """Counts of pairs, sorted by context and then by word, and the probabilities that follow from them."""

    offsets: Ints
    """[V + 1]: the pairs of context v stand from offsets[v] to offsets[v + 1]."""
    words: Ints
    """[P]: the second token of each pair."""
    counts: Ints
    """[P]: how often the pair was seen."""
    predictable: NDArray[np.bool_]
    """[V]: whether a token can be predicted at all."""

    @classmethod
    def estimate(
        cls, sequences: Iterable[Sequence[int]], vocab_size: int, bos_id: int, eos_id: int, pad_id: int
    ) -> BigramCounts:
        """Count the pairs (bos, w1), (w1, w2), ... (wn, eos) of sequences that hold neither bos nor padding.

        Memory grows with the number of different pairs, not with the text. Raises DataError for an id that is not
        in the vocabulary or can never be predicted.
        """
        predictable = np.ones(vocab_size, dtype=np.bool_)
        predictable[[bos_id, pad_id]] = False
        keys: Ints = np.empty(0, dtype=np.int64)
        counts: Ints = np.empty(0, dtype=np.int64)
        sequences = iter(sequences)
        while chunk := list(islice(sequences, _CHUNK)):
            contexts, words = _pairs(chunk, bos_id, eos_id)
            _check(words, predictable)
            keys, counts = _merge(keys, counts, contexts * vocab_size + words)
        offsets = np.searchsorted(keys, np.arange(vocab_size + 1) * vocab_size)
        return cls(offsets, (keys % vocab_size).astype(np.int32), counts, predictable)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> BigramCounts:
        """The counts that `arrays` gave. Raises DataError for arrays that are no counts."""
        if missing := [name for name in ("offsets", "words", "counts", "predictable") if name not in arrays]:
            raise DataError(f"these are no bigram counts: {missing[0]!r} is missing.")
        found = cls(
            offsets=arrays["offsets"].astype(np.int64),
            words=arrays["words"].astype(np.int32),
            counts=arrays["counts"].astype(np.int64),
            predictable=arrays["predictable"].astype(np.bool_),
        )
        if not found._fits_together():
            raise DataError("these are no bigram counts: their sizes and numbers do not fit together.")
        return found

    def _fits_together(self) -> bool:
        """Whether the pairs of every context are a part of the list, and words of the vocabulary."""
        flat = all(array.ndim == 1 for array in (self.offsets, self.words, self.counts, self.predictable))
        if not flat or len(self.offsets) != self.vocab_size + 1 or len(self.words) != len(self.counts):
            return False
        ends_fit = self.offsets[0] == 0 and self.offsets[-1] == len(self.words)
        in_order, are_words = np.diff(self.offsets) >= 0, (self.words >= 0) & (self.words < self.vocab_size)
        return bool(ends_fit and in_order.all() and are_words.all() and (self.counts > 0).all())

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """All there is to save."""
        return {
            "offsets": self.offsets,
            "words": self.words,
            "counts": self.counts,
            "predictable": self.predictable,
        }

    @property
    def vocab_size(self) -> int:
        """V, with the tokens that are never predicted."""
        return len(self.predictable)

    @cached_property
    def discount(self) -> float:
        """D = n1 / (n1 + 2 n2), or 0.5 when no pair was seen once or none twice: D must lie inside (0, 1)."""
        n1, n2 = int(np.sum(self.counts == 1)), int(np.sum(self.counts == 2))
        return n1 / (n1 + 2 * n2) if n1 and n2 else _DISCOUNT

    @cached_property
    def unigram(self) -> Floats:
        """p(w), [V]."""
        frequencies = np.bincount(self.words, self.counts, minlength=self.vocab_size) + self.predictable
        return np.asarray(frequencies / max(frequencies.sum(), 1))

    @cached_property
    def backoff(self) -> Floats:
        """What is left for p(w) after each context, D · N1+(v ·) / c(v), [V]; 1 after an unseen one."""
        followers = np.diff(self.offsets)
        return np.where(followers > 0, self.discount * followers / np.maximum(self._context_counts, 1), 1.0)

    @cached_property
    def _contexts(self) -> Ints:
        """The first token of each pair, [P]."""
        return np.repeat(np.arange(self.vocab_size), np.diff(self.offsets))

    @cached_property
    def _context_counts(self) -> Floats:
        """c(v), [V]."""
        return np.bincount(self._contexts, self.counts, minlength=self.vocab_size).astype(np.float64)

    @cached_property
    def _keys(self) -> Ints:
        """One sorted number for each pair, and a last one that belongs to no pair, [P + 1]."""
        return np.append(self._contexts * self.vocab_size + self.words, self.vocab_size**2)

    @cached_property
    def _discounted(self) -> Floats:
        """max(c(v w) - D, 0) / c(v) of each pair, and 0 at the end, [P + 1]."""
        return np.append((self.counts - self.discount) / self._context_counts[self._contexts], 0.0)

    def log_prob(self, contexts: Ints, words: Ints) -> Floats:
        """log p(words[i] | contexts[i]), [N] and [N] -> [N] in nats, by binary search in the pairs."""
        contexts = contexts.astype(np.int64)
        keys = contexts * self.vocab_size + words
        places = np.searchsorted(self._keys, keys)
        seen = np.where(self._keys[places] == keys, self._discounted[places], 0.0)
        return _log(self.backoff[contexts] * self.unigram[words] + seen)

    def log_probs(self, contexts: Ints) -> Floats:
        """log p(w | contexts[i]) for every w, [N] -> [N, V] in nats."""
        rows = self.backoff[contexts][:, None] * self.unigram
        num_pairs = np.diff(self.offsets)[contexts]
        row_starts = np.cumsum(num_pairs) - num_pairs
        pairs = np.arange(num_pairs.sum()) + np.repeat(self.offsets[contexts] - row_starts, num_pairs)
        rows[np.repeat(np.arange(len(contexts)), num_pairs), self.words[pairs]] += self._discounted[pairs]
        return _log(rows)


def _pairs(sequences: Sequence[Sequence[int]], bos_id: int, eos_id: int) -> tuple[Ints, Ints]:
    """The contexts and the words of all pairs, in the order of the text."""
    words = np.fromiter(chain.from_iterable(chain(ids, (eos_id,)) for ids in sequences), dtype=np.int64)
    lengths = np.fromiter((len(ids) + 1 for ids in sequences), dtype=np.int64, count=len(sequences))
    contexts = np.roll(words, 1)
    contexts[np.cumsum(lengths) - lengths] = bos_id
    return contexts, words


def _check(words: Ints, predictable: NDArray[np.bool_]) -> None:
    vocab_size = len(predictable)
    wrong = words[(words < 0) | (words >= vocab_size)]
    if len(wrong):
        raise DataError(f"token id {wrong[0]} is not in the vocabulary: ids go from 0 to {vocab_size - 1}.")
    wrong = words[~predictable[words]]
    if len(wrong):
        raise DataError(f"token id {wrong[0]} is begin of sentence or padding and cannot stand inside a sequence.")


def _merge(keys: Ints, counts: Ints, more: Ints) -> tuple[Ints, Ints]:
    """Add further pairs to counted ones; the keys stay sorted."""
    new_keys, new_counts = np.unique(more, return_counts=True)
    merged, places = np.unique(np.concatenate([keys, new_keys]), return_inverse=True)
    sums = np.bincount(places, np.concatenate([counts, new_counts]))
    return merged, sums.astype(np.int64)


def _log(probabilities: Floats) -> Floats:
    """Logarithm; -inf, without a warning, for what is never predicted."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)
