"""Are the two sides in the languages that they are said to be in, or the other way round?

Two kinds of evidence: a language's own signs (its script; for ten languages its function words), and likeness to
text whose language is known, which needs no knowledge of any language.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from heed.text.language.identify import are_crossed, profile, similarity
from heed.text.readers import CorpusFiles, Errors, column_numbers

MOST_PARTS = 10
LEAST_LINES = 100
"""Parts in which the order of the sides is looked at, and the lines of the smallest."""
CLEARLY = 0.3
"""By how much the sides of a part are more like the opposite ones. In eleven pairs of languages it was 1 to 2."""


def how_to_exchange(files: CorpusFiles, languages: tuple[str, str] = ("", ""), errors: Errors = "strict") -> str:
    """What to do where the sides of these files are the other way round, such that it helps in their form.

    The `languages` that source and target are said to be in choose the texts of one file, so saying others is no way.
    """
    src_lang, tgt_lang = languages
    if files.pairs is None:
        others = f", or say --src-lang {tgt_lang} --tgt-lang {src_lang}" if src_lang and tgt_lang else ""
        return f"Exchange the two sides{others}."
    if files.record_format == "tmx":
        return "The languages are exchanged in the file: correct xml:lang of its units, or export it again."
    is_table = files.record_format in ("tsv", "csv")
    src, tgt = column_numbers(files, errors) if is_table else files.fields
    said = f" --src-lang {src_lang}" * bool(src_lang) + f" --tgt-lang {tgt_lang}" * bool(tgt_lang)
    return f"Exchange the columns: --src-column {tgt} --tgt-column {src}{said}."


def exchanged_parts(src: Sequence[str], tgt: Sequence[str], same_language: float) -> tuple[list[slice], list[slice]]:
    """The parts of parallel lines in which the sides are the other way round than in most, and those others.

    Nothing where the lines are few. Parts whose sides are empty or alike (above `same_language`), as numbers are, tell
    nothing and are in neither.
    """
    num = min(MOST_PARTS, len(src) // LEAST_LINES)
    bounds = [len(src) * part // num for part in range(num + 1)] if num > 1 else []
    parts = [slice(start, end) for start, end in pairwise(bounds)]
    profiles = [(profile(src[part]), profile(tgt[part])) for part in parts]
    pairs = zip(parts, profiles, strict=True)
    telling = [(part, its) for part, its in pairs if all(its) and similarity(*its) <= same_language]
    crossed = [are_crossed(*its, *telling[0][1], CLEARLY) for _, its in telling]
    is_odd = 2 * sum(crossed) <= len(telling)
    found = [(part, its) for (part, _), its in zip(telling, crossed, strict=True)]
    return [part for part, its in found if its == is_odd], [part for part, its in found if its != is_odd]
