"""Filter of sentence pairs that are not used in training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from heed.core.config import Config
from heed.text.hashing import HashSet, hash_pair


class PairFilterConfig(Config):
    """The pairs to drop. The defaults are mild: they drop only what no model can use."""

    drop_empty: bool = True
    """Drop pairs with a side that is empty or white space."""
    drop_copies: bool = False
    """Drop pairs whose target is the source itself."""
    drop_duplicates: bool = True
    """Drop pairs that repeat an earlier one."""
    max_length_ratio: Annotated[float, Field(ge=1)] = 9.0
    """Drop pairs with one side more than this many times as long as the other, in characters."""
    ratio_from: Annotated[int, Field(ge=0)] = 20
    """The ratio applies only when the longer side has more characters than this."""
    max_characters: Annotated[int, Field(ge=1)] = 5000
    """Drop pairs with a side longer than this."""


class PairFilter:
    """Filters a corpus in one pass; keeps a hash of each pair (11 to 15 bytes) and counts what it drops."""

    def __init__(self, config: PairFilterConfig | None = None) -> None:
        self.config = config or PairFilterConfig()
        self.dropped: Counter[str] = Counter()
        self._seen = HashSet()

    def reason_to_drop(self, src: str, tgt: str) -> str | None:
        """The reason to drop a pair, as the function; None keeps it."""
        reason = reason_to_drop(self.config, src, tgt, lambda: self._seen.add(hash_pair(src, tgt)))
        if reason is not None:
            self.dropped[reason] += 1
        return reason


def reason_to_drop(config: PairFilterConfig, src: str, tgt: str, is_new: Callable[[], bool]) -> str | None:
    """The reason to drop a pair: "empty", "too long", "length ratio", "copy" or "duplicate"; None keeps it.

    `is_new` tells whether this is the first occurrence of the pair; it is asked only if nothing else is a reason.
    """
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
    return "duplicate" if config.drop_duplicates and not is_new() else None
