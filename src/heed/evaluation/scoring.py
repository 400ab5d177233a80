"""What are systems worth on a test set: scores, tests against the first, where they fail, whether they had seen it?"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.core.progress import message
from heed.evaluation.leakage import Leakage, check_leakage
from heed.evaluation.sentences import ScoredSentence, worst_sentences
from heed.evaluation.systems import HeldOut, System
from heed.metrics.metric import SentenceStatistics
from heed.metrics.score import Score
from heed.metrics.scoring import output_statistics
from heed.metrics.sentence_length import LengthBucket, by_length
from heed.metrics.significance import Comparison, compare
from heed.metrics.translation import length_ratio
from heed.metrics.word_frequency import FrequencyBand, WordCounts, WordMatches, by_frequency, unigram_f1
from heed.run import Run
from heed.tasks.prepare import WORDS_SEEN
from heed.text.normalise import Normaliser

INTERVALS = 1000
"""Draws of each bootstrap interval."""


@dataclass(frozen=True)
class Evaluation:
    """What was found out about one system on one test set."""

    system: str
    test: HeldOut
    run: Run | None
    scores: Mapping[str, Score]
    """By metric, with 95 % intervals."""
    how: Mapping[str, Any] = field(default_factory=dict)
    """Choices of the search and of scoring."""
    length_ratio: float | None = None
    """Words of the outputs per word of the references."""
    against_first: Mapping[str, Comparison] = field(default_factory=dict)
    """By metric; empty for the first system."""
    leakage: Leakage | None = None
    """None for a system that has no fingerprint of what it was trained on."""
    without_leaked: Mapping[str, Score] = field(default_factory=dict)
    """The scores on the lines that no run was trained on, where there are others."""
    num_clean: int | None = None
    """How many lines these are."""
    by_length: Sequence[LengthBucket] = ()
    by_frequency: Sequence[FrequencyBand] = ()
    """Empty where no run tells how often training had which word."""
    unigram_f1: Mapping[str, WordMatches] = field(default_factory=dict)
    """Of `all` words, of `rare` and of `unseen` ones; empty likewise."""
    words_as: str = ""
    """What the words of `by_frequency` and `unigram_f1` are, and which of them are rare."""
    words_of: str = ""
    """The system whose training data says how frequent they are."""
    num_rows: int = 0
    """Lines, or blocks of lines, that intervals and tests draw; 0 where nobody has said it."""
    worst: Sequence[ScoredSentence] = ()
    members: Sequence[Run] = ()
    """The runs of an ensemble."""

    @property
    def synthetic(self) -> bool:
        """Whether a run was trained on the built-in corpus."""
        return any(run.recipe.data.synthetic for run in (self.run, *self.members) if run is not None)

    def to_json(self) -> dict[str, Any]:
        """All of it in types that `json` writes; scores in the order of the table."""
        return {
            "system": self.system,
            "run": str(self.run.folder) if self.run else None,
            "test": self.test.fingerprint(),
            "counted": self.test.counted,
            "synthetic": self.synthetic,
            **self.how,
            "scores": [score.to_json() for score in self.scores.values()],
            "length_ratio": self.length_ratio,
            "against_first": {name: asdict(comparison) for name, comparison in self.against_first.items()},
            "leakage": asdict(self.leakage) if self.leakage else None,
            "without_leaked": [score.to_json() for score in self.without_leaked.values()],
            "by_length": [bucket.to_json() for bucket in self.by_length],
            "by_frequency": [band.to_json() for band in self.by_frequency],
            "words_as": self.words_as,
            "unigram_f1": {kind: matches.to_json() for kind, matches in self.unigram_f1.items()},
            "worst": [asdict(sentence) for sentence in self.worst],
        }


def evaluate_systems(
    test: HeldOut,
    systems: Sequence[System],
    language: str | None = None,
    *,
    tokenised: bool = False,
    num_worst: int = 0,
    num_common: int = 50_000,
) -> list[Evaluation]:
    """Score translations by BLEU, chrF and TER; those after the first are compared with it.

    Frequencies of words are those in the training data of the first run that knows them, which counted them as it
    normalises text; words beyond the `num_common` most frequent ones are rare. Outputs and references are compared in
    Unicode's form NFC: é written as two characters is the same letter.
    """
    leaks = [check_leakage(system.run, test.rows) if system.run else None for system in systems]
    clean = unseen(test, leaks)
    words_of, training, normaliser = _words_of_training(systems)
    references = [_composed(line) for line in test.references]
    if changed := sum(line != before for line, before in zip(references, test.references, strict=True)):
        message(f"{test.files[-1]}: {changed:,} references are not in Unicode's form NFC, in which they are compared.")
    normalised = [normaliser.apply(line) for line in test.references]
    of_run = f" of {words_of}" if len(systems) > 1 else ""
    rare = f"rare: not of the {num_common:,} most frequent in training{of_run}"
    first: Mapping[str, SentenceStatistics] = {}
    evaluations = []
    for system, leakage in zip(systems, leaks, strict=True):
        outputs = [_composed(line) for line in system.outputs]
        written = [normaliser.apply(line) for line in system.outputs]
        found = output_statistics(outputs, references, language, tokenised=tokenised)
        evaluations.append(
            Evaluation(
                system=system.name,
                test=test,
                run=system.run,
                scores={name: statistics.score(INTERVALS) for name, statistics in found.items()},
                how={
                    **_search(system),
                    **_tag(system),
                    **precision_of(system.run, system.members),
                    "tokenised": tokenised,
                },
                length_ratio=length_ratio(outputs, references, language, tokenised=tokenised),
                against_first=_compared(first, found),
                leakage=leakage,
                without_leaked=_without_leaked(found, clean),
                num_clean=int(clean.sum()),
                by_length=by_length(test.sources, {name: found[name] for name in ("bleu", "chrf")}, INTERVALS),
                by_frequency=by_frequency(written, normalised, training) if training else (),
                unigram_f1=unigram_f1(written, normalised, training, num_common) if training else {},
                words_as=f"words as tok:{training.tokenizer} cuts them; {rare}" if training else "",
                words_of=words_of,
                num_rows=len(test.rows),
                worst=worst_sentences(system, test, found["chrf"].sentence_scores(), num_worst),
                members=system.members,
            )
        )
        first = first or found
    return evaluations


def _composed(line: str) -> str:
    return unicodedata.normalize("NFC", line)


def _compared(
    first: Mapping[str, SentenceStatistics], other: Mapping[str, SentenceStatistics]
) -> dict[str, Comparison]:
    """By metric; nothing for the first system itself, nor for a single sentence: any choice of it is the same."""
    return {name: compare(found, other[name]) for name, found in first.items() if len(found.rows) > 1}


def _words_of_training(systems: Sequence[System]) -> tuple[str, WordCounts | None, Normaliser]:
    """The name of the first run that knows them, the words, and how it normalises a line before it counts."""
    for system in systems:
        if system.run and (words := WordCounts.read(system.run.folder / WORDS_SEEN)):
            return system.name, words, system.run.recipe.data.normaliser
    return "", None, Normaliser()


def _search(system: System) -> dict[str, Any]:
    """What was said about the search, with α and the size of the beam that was kept alive in any case."""
    if system.options is None:
        return {}
    said = system.options.model_dump(exclude_defaults=True, exclude={"batch_size"})
    always = {"beam_size": system.options.width, "length_penalty": system.options.length_penalty}
    return {"search": {**always, **said, **always}}


def precision_of(run: Run | None, members: Sequence[Run]) -> dict[str, Any]:
    """The numbers that the weights of a run, or of an ensemble's members, are of in this evaluation."""
    found = [each.precision for each in (run, *members) if each is not None]
    return {"precision": found[0]} if found else {}


def _tag(system: System) -> dict[str, Any]:
    """What stood before each source, of a run that has tags."""
    return {"tag": system.run.source_tag} if system.run is not None and system.run.recipe.data.tags else {}


def unseen(test: HeldOut, leaks: Sequence[Leakage | None]) -> NDArray[np.bool_]:
    """Which lines no run was trained on."""
    clean = np.ones(len(test.rows), dtype=bool)
    for leakage in filter(None, leaks):
        clean[np.array(leakage.lines, dtype=np.int64) - 1] = False
    return clean


def _without_leaked(found: Mapping[str, SentenceStatistics], clean: NDArray[np.bool_]) -> dict[str, Score]:
    if clean.all() or not clean.any():
        return {}
    return {name: statistics.select(clean).score(INTERVALS) for name, statistics in found.items()}
