"""What stands between two sentences once they are translated? White space as the source has it, but for scripts.

Chinese and Japanese write sentences without a blank between them, others with one: so one is put in or left out where
a translation leads from the one kind to the other. `restore` puts back what is there; here is decided what that is.
"""

from __future__ import annotations

from collections.abc import Sequence

from heed.text.language.scripts import is_east_asian, is_unseparated
from heed.text.sentences import ENDS_WITHOUT_SPACE, Piece, restore


def gaps(pieces: Sequence[Piece], translations: Sequence[str]) -> list[str]:
    """For each piece of white space what becomes of it, for each sentence what is put in front of it."""
    remaining = iter(translations)
    sides = [(piece.text, next(remaining) if piece.is_sentence else piece.text) for piece in pieces]
    found = []
    for place, piece in enumerate(pieces):
        if piece.is_sentence:
            follows = place > 0 and pieces[place - 1].is_sentence
            found.append(" " if follows and _are_glued(sides[place - 1], sides[place]) else "")
        else:
            is_blank = 0 < place < len(pieces) - 1 and not piece.text.strip(" ")
            found.append("" if is_blank and _need_none(sides[place - 1], sides[place + 1]) else piece.text)
    return found


def written(pieces: Sequence[Piece], translations: Sequence[str]) -> str:
    """The whole text, one translation for each sentence."""
    found: list[Piece] = []
    for piece, gap in zip(pieces, gaps(pieces, translations), strict=True):
        found += [Piece(gap, is_sentence=False), piece] if piece.is_sentence else [Piece(gap, is_sentence=False)]
    return restore(found, translations)


def _are_glued(left: tuple[str, str], right: tuple[str, str]) -> bool:
    """Whether two translations need a blank where their sources, each beside its translation, have none.

    The parts of a word that was cut in two because of its length stay together.
    """
    (source, said), (next_source, next_said) = left, right
    if not said or not next_said or (said, next_said) == (source, next_source):
        return False
    needs_none = (is_east_asian(said[-1]), said[-1].isspace(), is_east_asian(next_said[0]), next_said[0].isspace())
    is_unseparated_here = is_unseparated(source[-1]) or is_unseparated(next_source[0])
    return not any(needs_none) and (is_unseparated_here or ENDS_WITHOUT_SPACE.search(source) is not None)


def _need_none(left: tuple[str, str], right: tuple[str, str]) -> bool:
    """Whether two translations stand without the blank that their sources have."""
    (source, said), (next_source, next_said) = left, right
    return _are_wide(said, next_said) and not _are_wide(source, next_source)


def _are_wide(left: str, right: str) -> bool:
    return bool(left and right) and is_east_asian(left[-1]) and is_east_asian(right[0])
