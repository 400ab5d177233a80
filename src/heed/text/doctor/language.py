"""Are two texts in the same language? Letter trigrams tell, without knowing any language."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

Profile = Counter[tuple[str, str, str]]


class EvenSample:
    """Lines spread evenly over a stream of unknown length: `size` to 2 x `size` of them once it is long enough."""

    MAX_CHARACTERS = 500

    def __init__(self, size: int = 2500) -> None:
        self.lines: list[str] = []
        self.step = 1
        """How far apart they are in the stream."""
        self._size = size
        self._seen = 0

    def add(self, line: str) -> None:
        """Look at one more line."""
        if self._seen % self.step == 0:
            self.lines.append(line[: self.MAX_CHARACTERS])
            if len(self.lines) == 2 * self._size:
                del self.lines[1::2]
                self.step *= 2
        self._seen += 1


def profile(lines: Iterable[str]) -> Profile:
    """How often each run of three characters occurs, in lower case."""
    counts: Profile = Counter()
    for line in lines:
        padded = f" {line.lower()} "
        counts.update(zip(padded, padded[1:], padded[2:], strict=False))
    return counts


def likeness(one: Profile, other: Profile) -> float:
    """The cosine of two profiles: above 0.9 for one language and domain, 0.6 across domains, below 0.4 for two."""
    shared = sum(count * other[gram] for gram, count in one.items() if gram in other)
    norms = math.sqrt(sum(count * count for count in one.values()) * sum(count * count for count in other.values()))
    return shared / norms if norms else 0.0
