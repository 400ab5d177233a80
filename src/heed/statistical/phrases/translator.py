"""Phrase-based translator: a phrase table, language models, the forms of words, and weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.statistical.backoff import BackoffModel
from heed.statistical.derivation import Derivation, DerivationStep, Forced, by_words, every_link
from heed.statistical.phrases.casing import SentenceCase
from heed.statistical.phrases.derivations import BestDerivations, PhraseDerivation
from heed.statistical.phrases.features import feature_names
from heed.statistical.phrases.language import LanguageScorer
from heed.statistical.phrases.options import COPIED, FORCED, OptionFinder
from heed.statistical.phrases.search import Limits, StackSearch
from heed.statistical.phrases.table import PhraseTable
from heed.statistical.phrases.word_classes import ClassLanguage
from heed.statistical.predictor import Floats
from heed.statistical.saved_arrays import Arrays, named, part_of

Words = list[tuple[int, ...]]
_NOTES = {COPIED: "copied", FORCED: "required"}
_LOOKED_AT = 10
"""Derivations that are compared for each one to return: many have the same words."""


@dataclass(frozen=True, eq=False)
class PhraseTranslator:
    """Everything that a translation follows from."""

    table: PhraseTable
    language: BackoffModel
    classes: ClassLanguage | None
    """The model of word classes; None if there is none."""
    case: SentenceCase
    weights: Floats
    """In the order of `features`."""
    options_per_phrase: int
    limits: Limits

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        return feature_names(self.classes is not None)

    @cached_property
    def scorers(self) -> list[LanguageScorer]:
        """The language models as the search reads them."""
        of_words = LanguageScorer(self.language)
        return [of_words, LanguageScorer(self.classes.model, self.classes.classes)] if self.classes else [of_words]

    @cached_property
    def finder(self) -> OptionFinder:
        """Finds the options of sentences."""
        return OptionFinder(self.table, self.scorers, self.weights, self.options_per_phrase)

    def with_weights(self, weights: Floats) -> PhraseTranslator:
        """The same with other weights."""
        other = replace(self, weights=weights)
        vars(other)["scorers"] = self.scorers
        return other

    def all(self, words: Words, width: int | None = None, forced: Sequence[Forced] = ()) -> Iterator[PhraseDerivation]:
        """The derivations that a search keeps of a sentence of at least one word, the best first."""
        limits = self.limits if width is None else replace(self.limits, width=width)
        options = self.finder.find(words, forced)
        return iter(BestDerivations(StackSearch(options, self.scorers, self.weights, limits).run()))

    def best(
        self, words: Words, number: int, width: int | None = None, forced: Sequence[Forced] = ()
    ) -> list[PhraseDerivation]:
        """The best derivations with different targets."""
        best: dict[tuple[int, ...], PhraseDerivation] = {}
        for each in islice(self.all(words, width, forced), _LOOKED_AT * number):
            best.setdefault(each.target, each)
            if len(best) == number:
                break
        return list(best.values())

    def derive(self, source: Sequence[int], width: int, number: int, forced: Sequence[Forced] = ()) -> list[Derivation]:
        """The best derivations of a source with different targets, as tokens."""
        words, begins, capital = self.case.enter_with_places(source)
        if not words:
            return []
        best = self.best(words, number, width, by_words(forced, words, begins))
        return [self._as_tokens(each, words, begins, capital) for each in best]

    def weights_by_name(self) -> dict[str, float]:
        """The weight of each feature."""
        return dict(zip(self.features, self.weights.tolist(), strict=True))

    def _as_tokens(self, derivation: PhraseDerivation, words: Words, begins: list[int], capital: bool) -> Derivation:
        ids: list[int] = []
        steps: list[DerivationStep] = []
        links: list[tuple[int, int]] = []
        for step in derivation.steps:
            target = step.target
            added = 0
            if target and not ids:
                first = words[step.begin] if step.row == COPIED else target[:1]
                left = self.case.leave(first, capital and step.row != FORCED)
                added = len(left) - len(first)
                target = (*left, *target[len(first) :])
            features = {name: value for name, value in zip(self.features, step.features, strict=True) if value}
            span = begins[step.begin], begins[step.end]
            steps.append(
                DerivationStep(
                    span, (len(ids), len(ids) + len(target)), features, _NOTES.get(step.row, "") * bool(target)
                )
            )
            if step.row < 0:
                links += every_link(begins[step.begin : step.end + 1], len(ids), len(ids) + len(target))
            else:
                links += [
                    (begins[step.begin + i], len(ids) + j + added * (j > 0))
                    for i, j in self.table.links_of(step.row, len(step.target))
                ]
            ids += target
        return Derivation(tuple(ids), derivation.score, tuple(steps), tuple(sorted(links)))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The arrays to save."""
        parts = {"table": self.table.arrays(), "language": self.language.arrays(), "case": self.case.arrays()}
        if self.classes is not None:
            parts["classes"] = self.classes.arrays()
        return {**named(parts), "weights": self.weights}

    @classmethod
    def from_arrays(
        cls, arrays: Arrays, num_words: int, bos_id: int, eos_id: int,
        options_per_phrase: int, limits: Limits,
    ) -> PhraseTranslator:  # fmt: skip
        """Read what `arrays` returned. Raises DataError for anything else."""
        weights, of_classes = arrays.get("weights"), part_of(arrays, "classes")
        number = len(feature_names(bool(of_classes)))
        if weights is None or weights.shape != (number,) or not np.isfinite(weights.astype(np.float64)).all():
            raise DataError(f"not a phrase-based translator: it needs {number} weights.")
        return cls(
            PhraseTable.from_arrays(part_of(arrays, "table"), num_words),
            BackoffModel.from_arrays(part_of(arrays, "language"), num_words, bos_id, eos_id),
            ClassLanguage.from_arrays(of_classes, num_words) if of_classes else None,
            SentenceCase.from_arrays(part_of(arrays, "case"), num_words),
            weights.astype(np.float64),
            options_per_phrase,
            limits,
        )
