"""Character n-grams of words, as fastText hashes them (Bojanowski et al. 2017, section 3.2).

A word is spelled `<word>`; its n-grams are all substrings of `min_n` to `max_n` characters, but not `<` or `>` alone.
Each has the number of the bucket that its FNV-1a hash falls into.
"""

from __future__ import annotations

from collections.abc import Sequence

_BASIS, _PRIME, _MASK = 2166136261, 16777619, 0xFFFF_FFFF


def character_ngrams(word: str, min_n: int, max_n: int) -> list[str]:
    """The n-grams of a word, by their beginning, shorter ones first."""
    spelled = f"<{word}>"
    ngrams = []
    for begin in range(len(spelled)):
        for end in range(begin + min_n, min(begin + max_n, len(spelled)) + 1):
            if end - begin > 1 or 0 < begin < len(spelled) - 1:
                ngrams.append(spelled[begin:end])
    return ngrams


def hash_ngram(ngram: str) -> int:
    """The 32-bit FNV-1a hash of the UTF-8 bytes, each extended by its sign to 32 bits, as fastText does."""
    value = _BASIS
    for byte in ngram.encode("utf-8", "surrogatepass"):
        value = ((value ^ (byte if byte < 128 else byte | 0xFFFF_FF00)) * _PRIME) & _MASK
    return value


def ngram_buckets(word: str, min_n: int, max_n: int, num_buckets: int) -> Sequence[int]:
    """The bucket of each n-gram of a word."""
    return [hash_ngram(ngram) % num_buckets for ngram in character_ngrams(word, min_n, max_n)]
