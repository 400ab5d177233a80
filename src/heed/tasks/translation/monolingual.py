"""Text in one language: the lines of it that a translator can learn from, for synthetic pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, islice
from pathlib import Path
from typing import Any

from heed.core.errors import DataError, UsageError
from heed.core.progress import warn
from heed.data.validation import VALID, read_valid
from heed.tasks.translation.corrections import old_pairs
from heed.tasks.translation.data import TranslationData
from heed.tasks.translation.prepare import normalised_pairs
from heed.text.hashing import HashSet, hash_text
from heed.text.language.identify import profile, similarity
from heed.text.language.scripts import main_script
from heed.text.readers import read_text
from heed.text.readers.tables import one_line

SIDES = ("src", "tgt")
SAMPLE = 2000
"""Lines by which the language and the script of a text are judged."""


def usable_text(
    paths: Sequence[Path], side: str, sample: Sequence[Sequence[str]], known: Iterable[str], held: Iterable[str],
    data: TranslationData, force: bool, other: str = "",
) -> tuple[Iterator[str], Counter[str]]:  # fmt: skip
    """The lines of text in the language of one side that a model can learn from, and the others, counted by reason.

    `sample`: real pairs; `known`: the training sentences of the side; `held`: the validation sentences; `other`: the
    flag for text in the other language, if there is one. Raises UsageError for text that looks like the other language,
    unless `force`, which only warns of it.
    """
    place = SIDES.index(side)
    for path in paths:
        wrong = _wrong_language(path, side, read_text(path, data.errors), sample, other)
        if wrong and not force:
            raise UsageError(f"{wrong} If it is the right text, continue with --force.")
        if wrong:
            warn(wrong)
    lines = chain.from_iterable(read_text(path, data.errors) for path in paths)
    normalised = (one_line(data.normaliser.apply(line)) for line in lines)
    dropped = Counter[str]()
    held_keys = {hash_text(text) for text in held}
    script = _usual_script(row[place] for row in sample)
    return _usable(normalised, script, known, held_keys, data.filter.max_characters, dropped), dropped


def source_text(
    predictor: Any, data: TranslationData, paths: Sequence[Path], force: bool = False
) -> tuple[Iterator[str], Counter[str]]:
    """Text in the source language for teachers to translate, without the sentences of a student's data.

    Raises UsageError for text that looks like the other language, unless `force`, and DataError for text of which
    nothing is left.
    """
    run, tag = predictor.run, predictor.source_tag
    held = {text for row in (read_valid(run.folder) if run.files.has(VALID) else ()) for text in row[:2]}
    if files := data.valid_files():
        held.update(chain.from_iterable(normalised_pairs(data, files)))
    real = (row[:2] for row in old_pairs(data, held, synthetic=False) if row[2] == tag)
    if not (sample := nsmallest(SAMPLE, real, key=lambda row: hash_text(row[0]))):
        raise DataError("the training data has no pairs that people wrote, with which --mono-src can be compared.")
    known = (src for src, _, of_pair in old_pairs(data, held) if of_pair == tag)
    usable, dropped = usable_text(paths, SIDES[0], sample, known, held, data, force)
    first = next(usable, None)  # so that text without any is refused before the teachers translate
    if first is None:
        raise DataError(f"nothing is left of --mono-src: {reasons(dropped)}. Give other text.")
    return chain([first], usable), dropped


def reasons(dropped: Mapping[str, int]) -> str:
    """`12 empty, 3 repeated`."""
    return ", ".join(f"{count:,} {reason}" for reason, count in dropped.items()) or "it is empty"


def _usable(
    lines: Iterable[str], script: str | None, known: Iterable[str], held: set[int], most: int, dropped: Counter[str]
) -> Iterator[str]:
    seen = HashSet()
    for text in known:
        seen.add(hash_text(text))
    for line in lines:
        key = hash_text(line)
        reason = (
            "empty" if not line.strip()
            else "too long" if len(line) > most
            else "in the validation data" if key in held
            else "in another script" if main_script(line) not in (script, None)
            else "" if seen.add(key)
            else "repeated, or in the training pairs"
        )  # fmt: skip
        if reason:
            dropped[reason] += 1
        else:
            yield line


def _usual_script(lines: Iterable[str]) -> str | None:
    [(script, _)] = Counter(map(main_script, lines)).most_common(1)
    return script


def _wrong_language(path: Path, side: str, lines: Iterable[str], sample: Sequence[Sequence[str]], other: str) -> str:
    """What is wrong with text that looks more like the other side of the training pairs; empty for other text."""
    place = SIDES.index(side)
    own, opposite = (profile(row[each] for row in sample) for each in (place, 1 - place))
    here = profile(islice(lines, SAMPLE))
    if similarity(here, opposite) <= similarity(here, own):
        return ""
    named = {"src": "source", "tgt": "target"}[side]
    advice = f"Give it as {other}, or give" if other else "Give"
    return (
        f"--mono-{side} {path} does not look like the {named} language of the run, but like the other one. {advice} "
        f"text in the {named} language."
    )
