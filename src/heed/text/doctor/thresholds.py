"""Thresholds of the data doctor: above which share a problem is a warning, or stops the training."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from heed.core.config import Config

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class Thresholds(Config):
    """Shares of lines or pairs, from 0 to 1. Above a `stop_` share the data would ruin the training."""

    min_pairs: Count = 100
    """Fewer pairs than this, after filtering, stop the training."""
    few_pairs: Count = 10_000
    """Fewer pairs than this give a weak translator: a warning. Measured with 5,865 and 7,239 (docs/results.md)."""
    min_characters: Count = 1000
    """A monolingual text shorter than this stops the training."""
    stop_empty: Share = 0.1
    """Pairs with an empty side."""
    stop_copies: Share = 0.5
    """Pairs whose target is the source."""
    stop_leaked: Share = 0.1
    """Pairs (of a text: lines) of a validation or test set that are in training."""
    stop_damaged: Share = 0.05
    """Lines damaged by a wrong encoding."""
    stop_nul: Share = 0.5
    """Lines with a NUL character; a file with more is UTF-16."""
    stop_unknown: Share = 0.2
    """Tokens that are not in the vocabulary."""
    stop_misaligned: Share = 0.25
    """Blocks of pairs in which the lengths of the two sides are unrelated."""
    stop_exchanged: Share = 0.25
    """Parts of the pairs whose sides are exchanged relative to most parts."""
    warn: Share = 0.01
    """Any other problem is a warning above this share, and a note below."""
    warn_repeated: Share = 0.2
    """As `warn`, for repeated lines and pairs and for dropped pairs, which are common and do little harm."""
    unrelated_lengths: Share = 0.3
    """A block is misaligned when the correlation of its lengths is below this. Translations have 0.5 to 0.95."""
    same_language: Share = 0.9
    """Sides whose letter trigrams are more similar than this (cosine) are in one language. Related ones have 0.6."""
    tokenised: Share = 0.5
    """A side is tokenised when more of its lines than this have a space before a comma or full stop."""
    long_line: Count = 1000
    """A line with more characters than this is very long."""
    num_examples: Count = 3
    """Examples kept for each finding."""
