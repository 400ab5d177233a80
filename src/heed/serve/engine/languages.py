"""Languages of the served models, and samples of them for language detection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from heed.core.errors import DataError, MissingInputError
from heed.data.store import TokenStore
from heed.data.validation import read_valid
from heed.run import Run
from heed.tasks.prepare import open_tokens, vocabulary_digests
from heed.text.language.codes import code_of, is_right_to_left, name_of
from heed.text.language.identify import FREQUENT_WORDS, Detected, LanguageIdentifier, may_be_in

_NAMES = {"src": "Source language", "tgt": "Target language", "und": "Unknown language"}
"""Placeholders for languages that a run does not name."""
PLACES, NEIGHBOURS = 200, 10
"""Sample of the training data: evenly spaced places, and consecutive rows read at each."""

Pair = tuple[tuple[str, str], tuple[str, str]]
"""Codes of source and target, empty if the run does not name them, and their texts."""


@dataclass(frozen=True)
class Language:
    """A language by its code, as a run writes it."""

    code: str

    @property
    def name(self) -> str:
        """Its name in English; the code itself for an unknown language."""
        return _NAMES.get(self.code) or name_of(self.code)

    @property
    def is_known(self) -> bool:
        """Whether the run names it."""
        return self.code not in _NAMES

    @property
    def direction(self) -> Literal["ltr", "rtl"]:
        """Its writing direction."""
        return "rtl" if is_right_to_left(self.code) else "ltr"


def language_pair(codes: tuple[str, str]) -> tuple[Language, Language]:
    """Source and target, with placeholders for those that a run does not name."""
    source, target = codes
    return Language(source or "src"), Language(target or "tgt")


class Detector(LanguageIdentifier):
    """Ranks the served languages. It is not confident about a text that looks like another one."""

    def detect(self, text: str) -> list[Detected]:
        """The served languages, the most likely first."""
        ranked = super().detect(text)
        share = may_be_in(text, [each.language for each in ranked])
        return [replace(each, confidence=round(share * each.confidence, 1)) for each in ranked]


def detector_of(runs: Iterable[Run], languages: Sequence[Language]) -> LanguageIdentifier:
    """A detector of these languages, from their frequent words and from what the runs were trained on."""
    samples = {language.code: [" ".join(FREQUENT_WORDS.get(code_of(language.code), ()))] for language in languages}
    for run in runs:
        for codes, texts in sample_pairs(run):
            for language, text in zip(language_pair(codes), texts, strict=True):
                if language.code in samples:  # a part without a tag may have a language that no direction has
                    samples[language.code].append(text)
    return Detector(samples)


def sample_pairs(run: Run) -> Iterator[Pair]:
    """Validation pairs, and a sample of the training pairs with the languages of their tags.

    Only detection needs them, so missing or damaged files are skipped.
    """
    data = run.recipe.data
    with suppress(DataError):
        for row in read_valid(run.folder):
            if len(row) == 2:
                yield data.languages(data.tag_of_validation), (row[0], row[1])
    with suppress(DataError, MissingInputError, OSError):
        store = open_tokens(run.folder)
        if vocabulary_digests(run.tokenizers).items() <= store.manifest.fingerprint.items():
            yield from _trained_on(run, store)


def _trained_on(run: Run, store: TokenStore) -> Iterator[Pair]:
    src, tgt = (run.tokenizers[side] for side in ("src", "tgt"))
    tags = {id: tag for tag, id in src.vocabulary.tag_ids.items()}
    distance = max(NEIGHBOURS, len(store) // PLACES)
    for place in range(0, len(store), distance):
        for number in range(place, min(place + NEIGHBOURS, len(store))):
            ids = store.row("src", number).tolist()
            [source], [target] = src.decode([ids]), tgt.decode([store.row("tgt", number).tolist()])
            yield run.recipe.data.languages(tags.get(ids[0], "") if ids else ""), (source, target)
