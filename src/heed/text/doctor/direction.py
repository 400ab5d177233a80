"""Checks of direction: sides that are exchanged, exchanged in part, or in one language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from heed.core.environment import guide
from heed.text.doctor.findings import Finding, Thresholds, grade, visible
from heed.text.doctor.lines import LineScan
from heed.text.language.identify import are_crossed, look_exchanged, profile, similarity
from heed.text.readers import CorpusFiles, Errors, column_languages, column_numbers
from heed.text.readers.records import field_names

MAX_PARTS = 10
MIN_LINES = 100
"""The number of parts in which the order of the sides is checked, and the lines of the smallest."""
CROSSED_MARGIN = 0.3
"""By how much more similar to the opposite sides an exchanged part is. In eleven pairs of languages it was 1 to 2."""
TAGGED = 0.9
"""Share of the lines from which a word at their start counts as a tag."""
MAX_TAG = 30
"""Maximum number of characters of a tag that are shown."""


def exchanged(src: LineScan, tgt: LineScan, languages: tuple[str, str], to_exchange: str) -> Iterator[Finding]:
    """The finding that source and target are in each other's language."""
    if look_exchanged(src.sample.lines, tgt.sample.lines, *languages):
        src_lang, tgt_lang = languages
        message = f"The source looks like {tgt_lang} and the target like {src_lang}, but the opposite was given."
        if not (src_lang and tgt_lang):
            given, looks = ("source", "target") if src_lang else ("target", "source")
            message = f"The {looks} looks like {src_lang or tgt_lang}, but that is the language given for the {given}."
        yield Finding("swapped", "stop", src.num_lines, src.num_lines, message, to_exchange)


def partly_exchanged(src: LineScan, tgt: LineScan) -> Iterator[Finding]:
    """The finding that the sides of some parts of the data are exchanged."""
    lines = src.sample.lines
    odd, others = exchanged_parts(lines, tgt.sample.lines)
    if not odd:
        return
    num_parts = len(odd) + len(others)
    first_words = [_common_first_word([line for part in parts for line in lines[part]]) for parts in (odd, others)]
    if all(first_words) and first_words[0] != first_words[1]:
        message = (
            f"In {len(odd)} of {num_parts} parts of the data, the two sides are swapped. There the sources start "
            f"with {first_words[0]}, elsewhere with {first_words[1]}."
        )
        advice = (
            "For a model of two directions, give each direction as a part with a tag "
            f"({guide('more-data.md')}), so that each "
            "can be checked."
        )
        yield Finding("partly-swapped", "warn", len(odd), num_parts, message, advice)
        return
    severity = grade(len(odd) / num_parts, Thresholds.stop_exchanged, 0.0)
    message = (
        f"From about line {odd[0].start * src.sample.step + 1:,} on, the two sides seem to be swapped, judging by "
        f"their letters, in {len(odd)} of {num_parts} parts of the data."
    )
    advice = "Look at the pairs there, and swap the sides that are the wrong way round."
    yield Finding("partly-swapped", severity, len(odd), num_parts, message, advice)


def _common_first_word(lines: Sequence[str]) -> str:
    """The word that nearly all lines start with, as a tag does; empty if there is none."""
    [(word, number)] = Counter((line.split(maxsplit=1) or [""])[0] for line in lines).most_common(1)
    return visible(word[:MAX_TAG]) if number >= TAGGED * len(lines) else ""


def same_language(src: LineScan, tgt: LineScan) -> Iterator[Finding]:
    """The finding that both sides are in one language."""
    value = similarity(profile(src.sample.lines), profile(tgt.sample.lines))
    if value > Thresholds.same_language:
        message = f"Source and target look like the same language (similarity of their letter trigrams: {value:.2f})."
        advice = "Unless this is intended, check whether a file was given twice."
        yield Finding("same-language", "warn", src.num_lines, src.num_lines, message, advice)


def how_to_exchange(files: CorpusFiles, languages: tuple[str, str] = ("", ""), errors: Errors = "strict") -> str:
    """The advice for files whose sides are exchanged, which depends on their format.

    In a single file of pairs `languages` selects the texts, so giving other languages would not help.
    """
    src_lang, tgt_lang = languages
    if files.pairs is None:
        others = f", or give --src-lang {tgt_lang} --tgt-lang {src_lang}" if src_lang and tgt_lang else ""
        return f"Swap the two sides{others}."
    if files.record_format == "tmx":
        return "The languages are swapped in the file: correct xml:lang of its units, or export it again."
    is_table = files.record_format in ("tsv", "csv")
    src, tgt = column_numbers(files, errors) if is_table else field_names(files, errors)
    flags = f" --src-lang {src_lang}" * bool(src_lang) + f" --tgt-lang {tgt_lang}" * bool(tgt_lang)
    return f"Swap the columns: --src-column {tgt} --tgt-column {src}{flags}."


def how_to_exchange_part(files: CorpusFiles, errors: Errors = "strict") -> str:
    """The advice for a part of the training data whose sides are exchanged.

    Columns are given for all parts together, so those of one part can only be exchanged in its file. Other languages
    make the part another direction, except where they select the texts of the file.
    """
    direction = " Only if it is meant as the other direction, set its src_lang and tgt_lang instead."
    if files.pairs is None:
        return f"Swap src and tgt of this part.{direction}"
    if files.record_format == "tmx":
        return how_to_exchange(files)
    if files.record_format not in ("tsv", "csv"):
        return f"Swap the texts of the two fields in the file of this part.{direction}"
    advice = "Swap the texts of the two columns in the file of this part, but not the headings."
    return advice if any(column_languages(files, errors).values()) else f"{advice}{direction}"


def exchanged_parts(src: Sequence[str], tgt: Sequence[str]) -> tuple[list[slice], list[slice]]:
    """The parts of parallel lines in which the sides are exchanged relative to most parts, and the other parts.

    Nothing for few lines. Parts whose sides are empty, or in one language as numbers are, cannot be judged and are in
    neither.
    """
    num = min(MAX_PARTS, len(src) // MIN_LINES)
    bounds = [len(src) * part // num for part in range(num + 1)] if num > 1 else []
    parts = [slice(start, end) for start, end in pairwise(bounds)]
    profiles = [(profile(src[part]), profile(tgt[part])) for part in parts]
    pairs = zip(parts, profiles, strict=True)
    judged = [(part, its) for part, its in pairs if all(its) and similarity(*its) <= Thresholds.same_language]
    crossed = [are_crossed(*its, *judged[0][1], CROSSED_MARGIN) for _, its in judged]
    is_odd = 2 * sum(crossed) <= len(judged)
    verdicts = [(part, its == is_odd) for (part, _), its in zip(judged, crossed, strict=True)]
    return [part for part, odd in verdicts if odd], [part for part, odd in verdicts if not odd]
