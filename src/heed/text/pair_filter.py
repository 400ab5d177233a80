"""Which sentence pairs are left out of training, and why?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field

from heed.core.config import Config
from heed.text.hashing import HashSet, hash_pair


class PairFilterConfig(Config):
    """Which pairs to leave out. The defaults are mild: what goes is of no use to any model."""

    drop_empty: bool = True
    """Leave out pairs in which a side is empty or white space."""
    drop_copies: bool = False
    """Leave out pairs whose target is the source itself."""
    drop_duplicates: bool = True
    """Leave out a pair that came before."""
    max_length_ratio: Annotated[float, Field(ge=1)] = 9.0
    """Leave out pairs with one side more than this many times as long as the other, in characters."""
    ratio_from: Annotated[int, Field(ge=0)] = 20
    """The ratio counts only when the longer side has more characters than this."""
    max_characters: Annotated[int, Field(ge=1)] = 5000
    """Leave out pairs with a side longer than this."""


class PairFilter:
    """One pass over a corpus: remembers the pairs it has seen (11 to 15 bytes each) and counts what it drops."""

    def __init__(self, config: PairFilterConfig | None = None) -> None:
        self.config = config or PairFilterConfig()
        self.dropped: Counter[str] = Counter()
        self._seen = HashSet()

    def reason_to_drop(self, src: str, tgt: str, is_new: bool | None = None) -> str | None:
        """Why this pair is left out, in a word or two: "empty", "too long", "length ratio", "copy", "duplicate".

        `is_new`: whether it comes for the first time, where the caller remembers that; else it is remembered here.
        """
        reason = self._reason(src, tgt, is_new)
        if reason is not None:
            self.dropped[reason] += 1
        return reason

    def kept(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """The pairs that stay, in order."""
        return (pair for pair in pairs if self.reason_to_drop(*pair) is None)

    def _reason(self, src: str, tgt: str, is_new: bool | None) -> str | None:
        config = self.config
        src, tgt = src.strip(), tgt.strip()
        if config.drop_empty and not (src and tgt):
            return "empty"
        shorter, longer = sorted((len(src), len(tgt)))
        if longer > config.max_characters:
            return "too long"
        if longer > config.ratio_from and longer > config.max_length_ratio * max(shorter, 1):
            return "length ratio"
        if config.drop_copies and src == tgt:
            return "copy"
        if config.drop_duplicates and not (self._seen.add(hash_pair(src, tgt)) if is_new is None else is_new):
            return "duplicate"
        return None
