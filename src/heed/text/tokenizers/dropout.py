"""BPE-dropout that is decided by a key: different in every epoch, the same in every process.

BPE-dropout (Provilkov et al. 2020, algorithm 1): at each step every possible merge is dropped with probability p, and
the best of the others is made, until none is left. Going through the candidates best first, and tossing a coin only
until one is kept, is equivalent and makes a sentence one sequence of coin tosses. So it is enough to draw *how many
merges are kept before the next drop*. Everything before that drop stays as it was cut without dropout: a piece of n
bytes is n - 1 merges.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import count, pairwise, repeat

MAX_REMEMBERED = 30_000
LONGEST_REMEMBERED = 8

Candidate = tuple[int, int]
"""A possible merge: its rank, and the position of its left piece in the word."""

Word = tuple[list[int], list[Candidate]]
"""A word before any merge: the ids of its symbols, and the first candidates in order."""


def kept_between_drops(p: float, key: tuple[int, int, int]) -> Iterator[int]:
    """The numbers of merges kept before each drop: geometric numbers, decided by `p` and `key` alone.

    Block number n of the random numbers is a hash of (key, n), so there is no state to save and nothing to replay.
    """
    if p >= 1:
        yield from repeat(0)
    scale = 1 / math.log1p(-max(p, 1e-300))  # smaller values overflow the quotient
    for block in count():
        digest = blake2b(b"%d %d %d %d" % (*key, block)).digest()
        for number in struct.unpack("<8Q", digest):
            yield int(math.log((number + 0.5) * 2.0**-64) * scale)


class MergeDropout:
    """Repeats the merges of a byte-level BPE model with some of them left out."""

    def __init__(
        self,
        ids: Mapping[str, int],
        merges: Sequence[tuple[str, str]],
        bytes_of: Mapping[int, bytes],
        split: Callable[[str], Sequence[str]],
    ) -> None:
        """`merges`: pairs of pieces in the order they were learned; `ids`: of all pieces; `bytes_of`: the bytes of each
        piece of text; `split`: gives the words of a text, in symbols of bytes.
        """
        self._ids = ids
        self._ranks = {(ids[left], ids[right]): rank for rank, (left, right) in enumerate(merges)}
        self._pairs = list(self._ranks)
        self._merged = [ids[left + right] for left, right in merges]
        self._bytes_of = bytes_of
        self._split = split
        self._symbols = {ids[piece]: piece for piece in ids}
        self._num_merges = {id: len(data) - 1 for id, data in bytes_of.items()}
        self._remembered: dict[tuple[int, ...], list[Word]] = {}
        self._opens_word = {id for id, data in bytes_of.items() if _opens_word(data)}

    def cut(self, ids: Sequence[int], p: float, key: tuple[int, int, int]) -> list[int]:
        """Segment an encoded sentence again, with `p` above 0. Its bytes stay the same."""
        drops = kept_between_drops(p, key)
        keep = next(drops)
        cut: list[int] = []
        for chunk in self._chunks(ids):
            num_merges = sum([self._num_merges[id] for id in chunk])
            if num_merges <= keep:
                keep -= num_merges
                cut += chunk
            else:
                for symbols, candidates in self._words(tuple(chunk)):
                    pieces, keep = self._merge(symbols.copy(), candidates.copy(), keep, drops)
                    cut += pieces
        return cut

    def _chunks(self, ids: Sequence[int]) -> list[list[int]]:
        """The sentence in parts that each start with a space: much cheaper than finding its words."""
        chunks: list[list[int]] = [[]]
        for id in ids:
            if id in self._opens_word:
                chunks.append([])
            chunks[-1].append(id)
        return chunks

    def _words(self, chunk: tuple[int, ...]) -> list[Word]:
        words = self._remembered.get(chunk)
        if words is None:
            words = [self._uncut(word) for word in self._spelled(chunk)]
            if len(self._remembered) == MAX_REMEMBERED:
                self._remembered.clear()
            if len(chunk) <= LONGEST_REMEMBERED:  # a whole sentence, in a script without spaces, does not recur
                self._remembered[chunk] = words
        return words

    def _spelled(self, chunk: Sequence[int]) -> Sequence[str]:
        try:
            return self._split(b"".join([self._bytes_of[id] for id in chunk]).decode())
        except UnicodeDecodeError:  # the sentence was truncated inside a character
            return ["".join([self._symbols[id] for id in chunk])]

    def _uncut(self, word: str) -> Word:
        symbols = [self._ids[symbol] for symbol in word]
        ranks = [(self._ranks.get(pair), place) for place, pair in enumerate(pairwise(symbols))]
        return symbols, sorted((rank, place) for rank, place in ranks if rank is not None)

    def _merge(
        self, ids: list[int], candidates: list[Candidate], keep: int, drops: Iterator[int]
    ) -> tuple[list[int], int]:
        """The pieces of a word when `keep` merges are kept before the next drop, and the remaining `keep`.

        The word is a linked list: a merged piece keeps its left position, and `after` skips the right one. Candidates
        are in a heap, best rank first and then leftmost; one that no longer applies is ignored.
        """
        end = len(ids)
        before, after = list(range(-1, end - 1)), list(range(1, end + 1))
        ranks, pairs, merged = self._ranks, self._pairs, self._merged
        dropped: list[Candidate] = []
        while candidates:
            rank, left = heappop(candidates)
            right = after[left]
            if right == end or (ids[left], ids[right]) != pairs[rank]:
                continue
            if keep == 0:
                dropped.append((rank, left))
                keep = next(drops)
                continue
            keep -= 1
            ids[left], ids[right] = merged[rank], -1
            after[left] = following = after[right]
            if following < end:
                before[following] = left
            for place in (before[left], left):  # its two new neighbours
                if place >= 0 and after[place] < end:
                    new = ranks.get((ids[place], ids[after[place]]))
                    if new is not None:
                        heappush(candidates, (new, place))
            for candidate in dropped:  # dropped for one step only
                heappush(candidates, candidate)
            dropped.clear()
        return [id for id in ids if id >= 0], keep


def _opens_word(piece: bytes) -> bool:
    """Whether the piece certainly starts a word: a space, followed by something other than white space."""
    text = piece.decode("utf-8", "ignore")
    return text[:1] == " " and len(text) > 1 and not text[1].isspace()
