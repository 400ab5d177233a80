"""Byte pair encoding, written for reading.

Sennrich et al. (2016), "Neural Machine Translation of Rare Words with Subword Units", algorithm 1, as their program
`subword-nmt` does it. Slow and plain: it is the oracle for how the fast tokenizers apply merges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

Pair = tuple[str, str]

END_OF_WORD = "</w>"


def symbols_of(word: str) -> tuple[str, ...]:
    """A word as characters, the last one marked: `low` is `l o w</w>`."""
    return (*word[:-1], word[-1] + END_OF_WORD)


def merge(symbols: Sequence[str], pair: Pair) -> tuple[str, ...]:
    """Join every occurrence of the pair, from the left."""
    merged: list[str] = []
    i = 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == pair:
            merged.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return tuple(merged)


def learn(lines: Iterable[str], num_merges: int, min_frequency: int = 2) -> list[Pair]:
    """The merges in the order in which they are learned.

    Each step merges the pair that is most frequent inside words, of equally frequent ones the largest in the order
    of its letters, and learning stops when no pair is seen `min_frequency` times.
    """
    words = Counter(word for line in lines for word in line.split())
    segmented = {word: symbols_of(word) for word in words}
    merges: list[Pair] = []
    while len(merges) < num_merges:
        counts: Counter[Pair] = Counter()
        for word, symbols in segmented.items():
            for pair in pairwise(symbols):
                counts[pair] += words[word]
        best = max(counts, key=lambda pair: (counts[pair], pair), default=None)
        if best is None or counts[best] < min_frequency:
            break
        merges.append(best)
        segmented = {word: merge(symbols, best) for word, symbols in segmented.items()}
    return merges


def apply(symbols: Sequence[str], merges: Sequence[Pair]) -> tuple[str, ...]:
    """Merge the pair that was learned first, as long as there is one."""
    while candidates := {*pairwise(symbols)}.intersection(merges):
        symbols = merge(symbols, min(candidates, key=merges.index))
    return tuple(symbols)


def segment(line: str, merges: Sequence[Pair]) -> list[str]:
    """The pieces of a line; `@@` follows a piece that does not end its word."""
    pieces: list[str] = []
    for word in line.split():
        *inner, last = apply(symbols_of(word), merges)
        pieces += [piece + "@@" for piece in inner] + [last.removesuffix(END_OF_WORD)]
    return pieces


def dropout_distribution(symbols: tuple[str, ...], merges: Sequence[Pair], p: float) -> dict[tuple[str, ...], float]:
    """BPE-dropout (Provilkov et al. 2020, algorithm 1): the exact probability of each way to cut a word.

    At each step every possible merge is dropped with probability p; the best of the others is made, and when there
    is none the word is done.
    """
    places = [i for i, pair in enumerate(pairwise(symbols)) if pair in merges]
    places.sort(key=lambda i: (merges.index((symbols[i], symbols[i + 1])), i))
    distribution: Counter[tuple[str, ...]] = Counter()
    distribution[symbols] += p ** len(places)
    for number_dropped, i in enumerate(places):
        merged = (*symbols[:i], symbols[i] + symbols[i + 1], *symbols[i + 2 :])
        for cut, probability in dropout_distribution(merged, merges, p).items():
            distribution[cut] += p**number_dropped * (1 - p) * probability
    return dict(distribution)
