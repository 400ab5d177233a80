"""Evaluation of outputs against references: scores, significance tests, analysis by length and word frequency."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError, UsageError
from heed.core.progress import message
from heed.decoding.options import SearchOptions
from heed.evaluation.evaluation import INTERVALS, Evaluation, check_leakages, compare_all, precision_of
from heed.evaluation.sentences import worst_sentences
from heed.evaluation.test_set import HeldOut
from heed.metrics import TRANSLATION_METRICS, output_statistics, sentence_scores
from heed.metrics.metric import Score, SentenceStatistics
from heed.metrics.sentence_length import by_length
from heed.metrics.translation import length_ratio
from heed.metrics.word_frequency import WordCounts, by_frequency, unigram_f1
from heed.run import Run
from heed.tasks.predictor import Combination
from heed.tasks.prepare import WORDS_SEEN
from heed.text.normalise import Normaliser
from heed.text.readers import Errors, read_text


@dataclass(frozen=True)
class System:
    """The outputs of a run, or of another toolkit that wrote them to a file."""

    name: str
    outputs: Sequence[str]
    run: Run | None = None
    options: SearchOptions | None = None
    """How the run was searched."""
    members: Sequence[Run] = ()
    """The runs of an ensemble."""


def translated(run: Run, test: HeldOut, options: SearchOptions, quiet: bool = False) -> System:
    """A run's translations of a test set."""
    message(f"translating {test.label} with {run.folder}", quiet)
    outputs = [hypothesis.text for hypothesis in run.predictor.translator.translate(test.sources, options)]
    return System(str(run.folder), outputs, run, options)


def translated_by_ensemble(
    runs: Sequence[Run], test: HeldOut, options: SearchOptions | None, quiet: bool = False
) -> System:
    """The translations of several runs as one model. Raises UsageError if their vocabularies differ."""
    first, *others = runs
    message(f"translating {test.label} with an ensemble of {len(runs)} runs", quiet)
    translator = first.task_type.predictor(first, Combination(others)).translator
    hypotheses = translator.translate(test.sources, options or first.recipe.decoding)
    return System(f"ensemble of {len(runs)}", [each.text for each in hypotheses], None, options, runs)


def tags_for(folders: Sequence[Path], tag: str | None) -> list[str | None]:
    """The tag for each run: runs that were not trained with `tag` use their own default.

    Raises UsageError for a tag that no run was trained with.
    """
    known = [getattr(Run(folder).recipe.data, "tags", []) for folder in folders]
    if tag and not any(tag in tags for tags in known):
        names = ", ".join(dict.fromkeys(name for tags in known for name in tags))
        raise UsageError(f"--tag {tag}: {f'the runs know {names}' if names else 'the runs were trained without tags'}.")
    return [tag if tag in tags else None for tags in known]


def read_finished(named: str, test: HeldOut, errors: Errors = "strict") -> System:
    """The outputs in a file, given as NAME=FILE. Raises UsageError for another form, DataError for their lines."""
    name, equals, path = named.partition("=")
    if not (name and equals and path):
        raise UsageError(f"--hyp takes NAME=FILE, such as marian=marian.out, got {named!r}.")
    outputs = list(read_text(path, errors))
    if len(outputs) != len(test.rows):
        raise DataError(
            f"{path} has {len(outputs):,} lines and {test.files[0]} {len(test.rows):,}: "
            "there must be one translation for each line, even if it is empty."
        )
    return System(name, outputs)


def evaluate_outputs(
    test: HeldOut,
    systems: Sequence[System],
    language: str | None = None,
    *,
    metrics: Sequence[str] = TRANSLATION_METRICS,
    tokenised: bool = False,
    num_worst: int = 0,
    num_common: int = 50_000,
) -> list[Evaluation]:
    """Score the outputs of each system by each metric; those after the first are compared with it.

    Word frequencies are those in the training data of the first run that has them, which counted words of normalised
    text; words beyond the `num_common` most frequent ones are rare. Outputs and references are compared in Unicode's
    form NFC, in which é written as two characters is the same letter.
    """
    leaks, clean = check_leakages(test, systems)
    words_of, training, normaliser = _training_words(systems)
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
        statistics = output_statistics(outputs, references, language, metrics, tokenised=tokenised)
        chrf = sentence_scores("chrf", outputs, references, language=language, tokenised=tokenised) if num_worst else []
        evaluations.append(
            Evaluation(
                system=system.name,
                test=test,
                run=system.run,
                scores={name: each.score(INTERVALS) for name, each in statistics.items()},
                how={**_search(system), **_tag(system), **precision_of(system), "tokenised": tokenised},
                length_ratio=length_ratio(outputs, references, language, tokenised=tokenised),
                against_first=compare_all(first, statistics),
                leakage=leakage,
                without_leaked=_without_leaked(statistics, clean),
                num_clean=int(clean.sum()),
                by_length=by_length(
                    test.sources, {name: statistics[name] for name in ("bleu", "chrf") if name in statistics}, INTERVALS
                ),
                by_frequency=by_frequency(written, normalised, training) if training else (),
                unigram_f1=unigram_f1(written, normalised, training, num_common) if training else {},
                words_as=f"words as tok:{training.tokenizer} cuts them; {rare}" if training else "",
                words_of=words_of,
                num_rows=len(test.rows),
                worst=worst_sentences(system.run, system.outputs, test, chrf, num_worst) if num_worst else (),
                members=system.members,
            )
        )
        first = first or statistics
    return evaluations


def _composed(line: str) -> str:
    return unicodedata.normalize("NFC", line)


def _training_words(systems: Sequence[System]) -> tuple[str, WordCounts | None, Normaliser]:
    """The first run that has word counts: its name, the counts, and how it normalises a line before counting."""
    for system in systems:
        if system.run and (words := WordCounts.read(system.run.files, WORDS_SEEN)):
            return system.name, words, system.run.recipe.data.normaliser
    return "", None, Normaliser()


def _search(system: System) -> dict[str, Any]:
    """The options that differ from their defaults, and always the beam size and α."""
    if system.options is None:
        return {}
    given = system.options.model_dump(exclude_defaults=True, exclude={"batch_size"})
    always = {"beam_size": system.options.width, "length_penalty": system.options.length_penalty}
    return {"search": {**always, **given, **always}}


def _tag(system: System) -> dict[str, Any]:
    """The tag in front of each source, for a run that has tags."""
    return {"tag": system.run.predictor.source_tag} if system.run is not None and system.run.recipe.data.tags else {}


def _without_leaked(statistics: Mapping[str, SentenceStatistics], clean: NDArray[np.bool_]) -> dict[str, Score]:
    if clean.all() or not clean.any():
        return {}
    return {name: each.select(clean).score(INTERVALS) for name, each in statistics.items()}
