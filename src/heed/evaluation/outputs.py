"""Evaluation of outputs against references: scores, significance tests, analysis by length and word frequency."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heed.core.errors import DataError, UsageError
from heed.core.progress import message
from heed.decoding.options import SearchOptions
from heed.evaluation.evaluation import (
    INTERVALS,
    Evaluation,
    ScoredSentence,
    check_leakages,
    compare_all,
    precision_of,
    with_clean_scores,
)
from heed.evaluation.test_set import HeldOut
from heed.inference.alignment import links_of_pairs
from heed.metrics import METRICS, TRANSLATION_METRICS, output_statistics, sentence_scores
from heed.metrics.metric import OutputMetric, SentenceStatistics
from heed.metrics.sentence_length import by_length
from heed.metrics.translation import length_ratio
from heed.metrics.word_frequency import WordCounts, by_frequency, unigram_f1
from heed.run import Run
from heed.tasks.predictor import Combination
from heed.tasks.prepare import WORDS_SEEN
from heed.text.normalise import Normaliser
from heed.text.readers import Errors, read_text

COMPARED = ("bleu", "chrf")
"""Metrics by which a new translator is compared with the old one."""


@dataclass(frozen=True)
class System:
    """The outputs of a run, or of another toolkit that wrote them to a file."""

    name: str
    outputs: Sequence[str]
    run: Run | None = None
    options: SearchOptions | None = None
    """Search options of the run."""
    members: Sequence[Run] = ()
    """The runs of an ensemble."""
    links: Sequence[Sequence[tuple[int, int]] | None] = ()
    """Word links of the outputs, where the search of the run has linked them."""


def translated(run: Run, test: HeldOut, options: SearchOptions, quiet: bool = False) -> System:
    """A run's translations of a test set."""
    message(f"translating {test.label} with {run.folder}", quiet)
    translator = run.predictor.line_translator(with_tokens=False)
    hypotheses = translator.translate(test.sources, options)
    outputs, links = [each.text for each in hypotheses], [each.links for each in hypotheses]
    return System(str(run.folder), outputs, run, options, links=links)


def translated_by_ensemble(
    runs: Sequence[Run], test: HeldOut, options: SearchOptions | None, quiet: bool = False
) -> System:
    """Translations by an ensemble of several runs. Raises UsageError if their vocabularies differ."""
    first, *others = runs
    message(f"translating {test.label} with an ensemble of {len(runs)} runs", quiet)
    translator = first.task_type.predictor(first, Combination(others)).line_translator(with_tokens=False)
    hypotheses = translator.translate(test.sources, options or first.recipe.decoding)
    return System(f"ensemble of {len(runs)}", [each.text for each in hypotheses], None, options, runs)


def tags_for(folders: Sequence[Path], tag: str | None) -> list[str | None]:
    """The tag for each run: None, its default, for runs that were not trained with `tag`.

    Raises UsageError for a tag that no run was trained with.
    """
    tags_of_runs = [getattr(Run(folder).recipe.data, "tags", []) for folder in folders]
    if tag and not any(tag in tags for tags in tags_of_runs):
        names = ", ".join(dict.fromkeys(name for tags in tags_of_runs for name in tags))
        raise UsageError(f"--tag {tag}: the runs were trained {f'with {names}' if names else 'without tags'}.")
    return [tag if tag in tags else None for tags in tags_of_runs]


def read_finished(named: str, test: HeldOut, errors: Errors = "strict") -> System:
    """The outputs in a file, given as NAME=FILE. Raises UsageError for another form, DataError for wrong lines."""
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
    metrics: Sequence[str] | None = None,
    tokenised: bool = False,
    num_worst: int = 0,
    num_common: int = 50_000,
) -> list[Evaluation]:
    """Score the outputs of each system by each metric; those after the first are compared with it.

    By default the metrics are those of translation, and the one that stopped the training of any of the runs.
    Word frequencies are those in the training data of the first run that has them, which counted words of normalised
    text; words beyond the `num_common` most frequent ones are rare. Outputs and references are compared in Unicode's
    form NFC, in which é written as two characters is the same letter.
    """
    metrics = metrics or _metrics_of(systems)
    leaks, _ = check_leakages(test, systems)
    words_of, training, normaliser = _training_words(systems)
    references = [composed(line) for line in test.references]
    if changed := sum(line != before for line, before in zip(references, test.references, strict=True)):
        text = f"{changed:,} references are not in Unicode's form NFC; they are converted to it for scoring."
        message(f"{test.files[-1]}: {text}")
    normalised = [normaliser.apply(line) for line in test.references]
    of_run = f" of {words_of}" if len(systems) > 1 else ""
    rare = f"rare: not among the {num_common:,} most frequent in training{of_run}"
    first: Mapping[str, SentenceStatistics] = {}
    evaluations = []
    for system, leakage in zip(systems, leaks, strict=True):
        outputs = [composed(line) for line in system.outputs]
        written = [normaliser.apply(line) for line in system.outputs]
        statistics = output_statistics(outputs, references, language, metrics, tokenised=tokenised)
        chrf = sentence_scores("chrf", outputs, references, language=language, tokenised=tokenised) if num_worst else []
        evaluations.append(
            Evaluation(
                system=system.name,
                test=test,
                run=system.run,
                scores={name: each.score(INTERVALS) for name, each in statistics.items()},
                how={**search_of(system), **_tag(system), **precision_of(system), "tokenised": tokenised},
                length_ratio=length_ratio(outputs, references, language, tokenised=tokenised),
                against_first=compare_all(first, statistics),
                leakage=leakage,
                by_length=by_length(
                    test.sources, {name: statistics[name] for name in ("bleu", "chrf") if name in statistics}, INTERVALS
                ),
                by_frequency=by_frequency(written, normalised, training) if training else (),
                unigram_f1=unigram_f1(written, normalised, training, num_common) if training else {},
                statistics=statistics,
                words_as=f"words as split by tok:{training.tokenizer}; {rare}" if training else "",
                words_of=words_of,
                num_rows=len(test.rows),
                worst=worst_sentences(system, test, chrf, num_worst) if num_worst else (),
                members=system.members,
            )
        )
        first = first or statistics
    return with_clean_scores(evaluations)


def _metrics_of(systems: Sequence[System]) -> Sequence[str]:
    stopped_by = [system.run.recipe.training.stop_metric for system in systems if system.run]
    of_outputs = [name for name in stopped_by if name in METRICS and issubclass(METRICS[name], OutputMetric)]
    return tuple(dict.fromkeys((*TRANSLATION_METRICS, *of_outputs)))


def compare_runs(old: Run, new: Run, test: HeldOut) -> tuple[Evaluation, Evaluation]:
    """The scores of two translators, each with its recipe's search, and tests of the new one against the old one."""
    systems = [translated(run, test, run.recipe.decoding, quiet=True) for run in (old, new)]
    language, tokenised = old.predictor.languages[1] or None, old.recipe.data.tokenised
    before, after = evaluate_outputs(test, systems, language, metrics=COMPARED, tokenised=tokenised)
    return before, after


def score_changes(before: Evaluation, after: Evaluation) -> str:
    """`BLEU 38.4 → 39.1, chrF2 61.0 → 61.4`."""
    return ", ".join(
        f"{score.name} {score.value:.1f} → {after.scores[name].value:.1f}" for name, score in before.scores.items()
    )


def composed(line: str) -> str:
    """A line in Unicode's form NFC."""
    return unicodedata.normalize("NFC", line)


def _training_words(systems: Sequence[System]) -> tuple[str, WordCounts | None, Normaliser]:
    """Name, word counts and normaliser of the first run that has word counts."""
    for system in systems:
        if system.run and (words := WordCounts.read(system.run.files, WORDS_SEEN)):
            return system.name, words, system.run.recipe.data.normaliser
    return "", None, Normaliser()


def search_of(system: System) -> dict[str, Any]:
    """Beam size and α, and the options that differ from their defaults. A derivation has no length penalty."""
    if system.options is None:
        return {}
    given = system.options.model_dump(exclude_defaults=True, exclude={"batch_size"})
    always = {"beam_size": system.options.width, "length_penalty": system.options.length_penalty}
    search = {**always, **given, **always}
    first = system.run or next(iter(system.members), None)
    if first is not None and first.blank_model.derives:
        del search["length_penalty"]
    return {"search": search}


def _tag(system: System) -> dict[str, Any]:
    """The tag in front of each source, for a run that has tags."""
    return {"tag": system.run.predictor.source_tag} if system.run is not None and system.run.recipe.data.tags else {}


def ranked(test: HeldOut, outputs: Sequence[str], chrf: Sequence[float]) -> list[ScoredSentence]:
    """The lines that are not empty on both sides, the worst first; equal scores stay in the order of the file.

    They are ranked by chrF, which is defined for the shortest sentences and counts half a correct word as half.
    """
    lines = [i for i, row in enumerate(test.rows) if any(side.strip() for side in row)]
    order = sorted(lines, key=lambda i: (chrf[i], i))
    return [ScoredSentence(i + 1, chrf[i], test.rows[i][0], outputs[i], test.rows[i][-1]) for i in order]


def worst_sentences(system: System, test: HeldOut, chrf: Sequence[float], number: int) -> list[ScoredSentence]:
    """The `number` worst sentences; for a run, with the word links of its derivations or its attention."""
    worst = ranked(test, system.outputs, chrf)[:number]
    return [_aligned(system.run, sentence, system.links) for sentence in worst] if system.run else worst


def _aligned(run: Run, sentence: ScoredSentence, links: Sequence[Sequence[tuple[int, int]] | None]) -> ScoredSentence:
    source, output = (run.recipe.data.normaliser.apply(text) for text in (sentence.source, sentence.output))
    if not (source.strip() and output.strip()):
        return sentence
    known = links[sentence.line - 1] if links else None
    pairs = links_of_pairs(run.predictor.translator, [(source, output)])[0] if known is None else known
    words = source.split(), output.split()
    return replace(
        sentence,
        alignment=" ".join(f"{i}-{j}" for i, j in pairs),
        links=" ".join(f"{words[0][i]}={words[1][j]}" for i, j in pairs),
    )


QUANTILES = {"good": (0.95, 0.85), "middle": (0.55, 0.45), "bad": (0.15, 0.05), "worst": (0.0,)}
"""The ranks of a report's samples among all sentences, fixed so that they are not selected by hand."""


def samples(sentences: Sequence[ScoredSentence]) -> list[tuple[str, ScoredSentence]]:
    """Samples of each kind, the best first, from all sentences as `ranked` returns them."""
    if not sentences:
        return []
    places = {int(share * len(sentences)): kind for kind, shares in QUANTILES.items() for share in shares}
    return [(kind, sentences[place]) for place, kind in places.items()]
