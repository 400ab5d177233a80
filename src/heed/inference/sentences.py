"""Sentence-by-sentence translation: splitting a text, and joining the translations with its white space.

Paragraphs, documents and lines beyond the limits are split into sentences, so that time and memory grow linearly with
the length of a line, and a model trained on sentences gets sentences. White space is kept as in the source, except
between scripts: Chinese and Japanese write no space between sentences, other languages do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heed.decoding.hypothesis import Hypothesis
from heed.text.language.scripts import is_east_asian, is_unseparated
from heed.text.sentences import ENDS_WITHOUT_SPACE, Piece, restore, split_long

MAX_CHARACTERS = 2000
"""Characters that are translated at once; a longer line is split into sentences."""
MAX_TOKENS = 1000
"""Source tokens that are translated at once: a character of some scripts takes several."""


def most_tokens(line: str) -> int:
    """A number of tokens that no tokenizer exceeds for a normalised line, its tag included."""
    return 2 * len(line.encode("utf-8", "replace")) + 4


def split_sentences(
    text: str,
    num_tokens: Callable[[str], int],
    max_characters: int = MAX_CHARACTERS,
    language: str | None = None,
    most: int = MAX_TOKENS,
) -> list[Piece]:
    """The sentences of a text and the white space between them; no sentence exceeds a limit."""
    pieces = split_long(text, max_characters, language)
    parts = [split_if_long(piece.text, num_tokens, most) if piece.is_sentence else [piece] for piece in pieces]
    return [piece for part in parts for piece in part]


def split_if_long(line: str, num_tokens: Callable[[str], int], most: int = MAX_TOKENS) -> list[Piece]:
    """A line as one piece, or its sentences if it exceeds a limit; `most`: tokens of a piece."""
    max_characters = MAX_CHARACTERS
    if len(line) <= max_characters:
        length = num_tokens(line)
        if length <= most or len(line) == 1:
            return [Piece(line, True)]
        max_characters = max(1, len(line) * most // length)
    return split_sentences(line, num_tokens, max_characters, most=most)


def translate_pieces(
    lines: Sequence[Sequence[Piece]], translate: Callable[[list[str]], list[Hypothesis]], mean_score: bool = False
) -> list[Hypothesis]:
    """One hypothesis for each line, given in pieces; the sentences of all lines are translated in one call.

    A line of one sentence gets its hypothesis. For several, log-probabilities and scores are summed, and tokens, links,
    alternatives and confidence are dropped, since no single output has them. `mean_score`: average the scores instead
    (utilities of minimum Bayes risk).
    """
    hypotheses = iter(translate([piece.text for pieces in lines for piece in pieces if piece.is_sentence]))
    return [_joined(pieces, [next(hypotheses) for p in pieces if p.is_sentence], mean_score) for pieces in lines]


def _joined(pieces: Sequence[Piece], parts: Sequence[Hypothesis], mean_score: bool) -> Hypothesis:
    if len(pieces) == len(parts) == 1:
        return parts[0]
    score = sum((part.score for part in parts), start=0.0)
    lm_log_probs = [part.lm_log_prob for part in parts if part.lm_log_prob is not None]
    return Hypothesis(
        ids=(),
        log_prob=sum((part.log_prob for part in parts), start=0.0),
        score=score / max(len(parts), 1) if mean_score else score,
        finished=all(part.finished for part in parts),
        text=join_sentences(pieces, [part.text for part in parts]),
        flags=tuple(dict.fromkeys(flag for part in parts for flag in part.flags)),
        fallback=any(part.fallback for part in parts),
        lm_log_prob=sum(lm_log_probs) if parts and len(lm_log_probs) == len(parts) else None,
    )


def join_sentences(pieces: Sequence[Piece], translations: Sequence[str]) -> str:
    """The whole text, given one translation for each sentence."""
    spaced: list[Piece] = []
    for piece, space in zip(pieces, whitespace(pieces, translations), strict=True):
        spaced += [Piece(space, is_sentence=False), piece] if piece.is_sentence else [Piece(space, is_sentence=False)]
    return restore(spaced, translations)


def whitespace(pieces: Sequence[Piece], translations: Sequence[str]) -> list[str]:
    """The replacement of each piece of white space, and the white space to insert before each sentence."""
    remaining = iter(translations)
    pairs = [(piece.text, next(remaining) if piece.is_sentence else piece.text) for piece in pieces]
    spaces = []
    for i, piece in enumerate(pieces):
        if piece.is_sentence:
            is_adjacent = i > 0 and pieces[i - 1].is_sentence
            spaces.append(" " if is_adjacent and _needs_space(pairs[i - 1], pairs[i]) else "")
        else:
            is_inner_space = 0 < i < len(pieces) - 1 and not piece.text.strip(" ")
            spaces.append("" if is_inner_space and _needs_no_space(pairs[i - 1], pairs[i + 1]) else piece.text)
    return spaces


def _needs_space(left: tuple[str, str], right: tuple[str, str]) -> bool:
    """Whether two (source, translation) pairs need a space where their sources have none.

    The parts of a word that was split because of its length stay together.
    """
    (source, target), (next_source, next_target) = left, right
    if not target or not next_target or (target, next_target) == (source, next_source):
        return False
    needs_none = (
        is_east_asian(target[-1]),
        target[-1].isspace(),
        is_east_asian(next_target[0]),
        next_target[0].isspace(),
    )
    is_unseparated_here = is_unseparated(source[-1]) or is_unseparated(next_source[0])
    return not any(needs_none) and (is_unseparated_here or ENDS_WITHOUT_SPACE.search(source) is not None)


def _needs_no_space(left: tuple[str, str], right: tuple[str, str]) -> bool:
    """Whether two (source, translation) pairs need no space where their sources have one."""
    (source, target), (next_source, next_target) = left, right
    return _are_wide(target, next_target) and not _are_wide(source, next_source)


def _are_wide(left: str, right: str) -> bool:
    return bool(left and right) and is_east_asian(left[-1]) and is_east_asian(right[0])
