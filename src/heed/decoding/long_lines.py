"""How is a line translated that is too long to be a sentence: a paragraph, or a file that lost its line breaks?

In pieces, each on its own, with the white space between them kept (`gaps.py`). So time and memory grow with the length
of a line and not with its square, and a model that has learned from sentences gets sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heed.decoding.gaps import written
from heed.decoding.hypothesis import Hypothesis
from heed.text.sentences import Piece, split_long

MAX_CHARACTERS = 2000
"""A line with more is always translated in pieces, none of which is longer."""
MAX_TOKENS = 1000
"""The same for the tokens of its source: a character of some scripts takes several."""


def split_if_long(line: str, num_tokens: Callable[[str], int]) -> list[Piece]:
    """A line as one piece; in pieces where it has more characters or tokens than are translated at once."""
    most = MAX_CHARACTERS
    if len(line) <= most:
        length = num_tokens(line)
        if length <= MAX_TOKENS or len(line) == 1:
            return [Piece(line, True)]
        most = max(1, len(line) * MAX_TOKENS // length)
    return shortened(split_long(line, most), num_tokens)


def shortened(pieces: Sequence[Piece], num_tokens: Callable[[str], int]) -> list[Piece]:
    """The same, with no sentence that is too long to be translated at once."""
    parts = [split_if_long(piece.text, num_tokens) if piece.is_sentence else [piece] for piece in pieces]
    return [short for of_piece in parts for short in of_piece]


def translate_apart(
    lines: Sequence[Sequence[Piece]], translate: Callable[[list[str]], list[Hypothesis]], mean_score: bool = False
) -> list[Hypothesis]:
    """One hypothesis for each line, given in pieces: all sentences are translated at once, and put back in place.

    A line of one sentence gets its hypothesis. Of several the log-probabilities and scores are sums, and tokens,
    alternatives and confidences are not kept: they are those of no single output.

    `mean_score`: scores are likenesses (minimum Bayes risk), of which a line has the mean.
    """
    found = iter(translate([piece.text for pieces in lines for piece in pieces if piece.is_sentence]))
    return [_joined(pieces, [next(found) for piece in pieces if piece.is_sentence], mean_score) for pieces in lines]


def _joined(pieces: Sequence[Piece], parts: Sequence[Hypothesis], mean_score: bool) -> Hypothesis:
    if len(pieces) == len(parts) == 1:
        return parts[0]
    score = sum((part.score for part in parts), start=0.0)
    of_lm = [part.lm_log_prob for part in parts if part.lm_log_prob is not None]
    return Hypothesis(
        ids=(),
        log_prob=sum((part.log_prob for part in parts), start=0.0),
        score=score / max(len(parts), 1) if mean_score else score,
        finished=all(part.finished for part in parts),
        text=written(pieces, [part.text for part in parts]),
        flags=tuple(dict.fromkeys(flag for part in parts for flag in part.flags)),
        fallback=any(part.fallback for part in parts),
        lm_log_prob=sum(of_lm) if parts and len(of_lm) == len(parts) else None,
    )
