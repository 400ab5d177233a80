"""Evaluation of language models and compressors on a text: perplexities and bits.

Each system gives the likelihood of every line. Scores per word, character and byte follow, whatever the model's tokens
are and however it reads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from heed.core.errors import UsageError
from heed.core.progress import warn
from heed.decoding.scoring import ScoredText, TextScorer, prefix_of
from heed.evaluation.evaluation import (
    INTERVALS,
    Evaluation,
    check_leakages,
    compare_all,
    differ_in_unknown,
    precision_of,
)
from heed.evaluation.test_set import HeldOut, read_monolingual
from heed.metrics import METRICS, score_likelihoods
from heed.metrics.likelihood import LikelihoodStatistics, TextLikelihood
from heed.metrics.metric import Score
from heed.run import Run
from heed.statistical.compressors import COMPRESSORS, compressed_bits
from heed.text.normalise import Normaliser
from heed.text.readers import Errors, read_text
from heed.training.metrics_log import read_metrics

WORDS_PER_BLOCK, MIN_BLOCKS = 500, 20
"""Size and minimum number of the blocks of lines that are drawn together if a model reads across lines."""

TESTED = "bits per byte"
"""The score by which models are compared."""


@dataclass(frozen=True)
class TextSystem:
    """A system, and the likelihoods that it gives a test text."""

    name: str
    likelihoods: Sequence[TextLikelihood]
    """One for each line; one for the whole text from a system that does not separate lines."""
    reads: str
    """How it reads, as part of a signature."""
    run: Run | None = None
    scored: ScoredText | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further columns of the table: `parameters`, `training_perplexity`."""
    members: Sequence[Run] = ()
    """The runs of a mixture."""


def read_test(text: Path, runs: Sequence[Run], errors: Errors = "strict") -> HeldOut:
    """A test text for these runs: with its blank lines if one of them predicts these."""
    return read_monolingual(text, any(run.recipe.data.keep_blank_lines for run in runs), errors)


def read_by(run: Run, test: HeldOut, scorer: TextScorer, name: str = "") -> TextSystem:
    """A run with the likelihoods that its scorer gives the test text."""
    scored = scorer.score(test.sources)
    facts = {"parameters": run.num_parameters, "training_perplexity": training_perplexity(run)}
    return TextSystem(name or str(run.folder), scored.likelihoods(), scorer.signature, run, scored, facts)


def training_perplexity(run: Run) -> float | None:
    """Perplexity per token of the training text at the validation whose weights were kept."""
    kept = [event for event in read_metrics(run.folder) if event["event"] == "validation" and event.get("best")]
    value = kept[-1].get("training_perplexity") if kept else None
    return float(value) if isinstance(value, int | float) else None


def mixture(systems: Sequence[TextSystem]) -> TextSystem:
    """One system that gives each token the mean of the probabilities of all.

    Raises UsageError if their tokens differ.
    """
    texts = [system.scored for system in systems if system.scored is not None]
    first = texts[0]
    if len(texts) < len(systems) or not all(_same_tokens(systems[0], system) for system in systems):
        raise UsageError(
            "--ensemble needs runs with the same tokens, and these split the text differently: train one with "
            "--tokenizer-of the other, and give both the same data.line_end and data.normaliser."
        )
    log_probs = np.logaddexp.reduce([text.log_probs for text in texts]) - math.log(len(texts))
    scored = ScoredText(first.lines, first.text, log_probs, first.line_end)
    reads = "+".join(dict.fromkeys(system.reads for system in systems))
    parameters = sum(system.facts.get("parameters", 0) for system in systems)
    members = [system.run for system in systems if system.run is not None]
    return TextSystem(
        f"ensemble of {len(systems)}", scored.likelihoods(), reads, None, scored, {"parameters": parameters}, members
    )


def _same_tokens(one: TextSystem, other: TextSystem) -> bool:
    """Whether both have the same pieces, whatever their ids, and split the text into the same ones."""
    if one.run is None or other.run is None or one.scored is None or other.scored is None:
        return False
    first, second = (run.tokenizers[run.sides[-1]].vocabulary for run in (one.run, other.run))
    if {*first.pieces} != {*second.pieces}:
        return False
    id_in_first = np.array([first.id(piece) for piece in second.pieces])
    return np.array_equal(one.scored.text.ids, id_in_first[other.scored.text.ids])


def compressed(
    test: HeldOut, normaliser: Normaliser, primer: Path | None = None, errors: Errors = "strict"
) -> list[TextSystem]:
    """General compressors on the lines with their line breaks; with a primer, also on the lines after that text."""
    lines = [normaliser.apply(line) for line in test.sources]
    primer_lines = [normaliser.apply(line) for line in read_text(primer, errors)] if primer else []
    counts = sum((TextLikelihood.of_sentence(line, 0.0, len(line.encode()) + 1) for line in lines), TextLikelihood())
    systems = []
    for before in [[], *([primer_lines] if primer else [])]:
        for name in COMPRESSORS:
            bits = compressed_bits(name, _joined(lines), _joined(before))
            reads = "context:file" + (f"|primer:{primer.name}" if primer and before else "")
            total = replace(counts, log_prob_sum=-bits * math.log(2))
            systems.append(TextSystem(name + " primed" * bool(before), [total], reads))
    return systems


def _joined(lines: Sequence[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def evaluate_texts(test: HeldOut, systems: Sequence[TextSystem]) -> list[Evaluation]:
    """Perplexities and bits of each system; those after the first are compared with it by bits per byte."""
    _require_alike(systems)
    leaks, clean = check_leakages(test, systems)
    block = lines_per_block(test, systems)
    first = LikelihoodStatistics.of(systems[0].likelihoods, block)
    evaluations = []
    for place, (system, leakage) in enumerate(zip(systems, leaks, strict=True)):
        by_line = len(system.likelihoods) == len(clean)
        kept = [] if clean.all() or not by_line else [system.likelihoods[i] for i in np.flatnonzero(clean).tolist()]
        statistics = LikelihoodStatistics.of(system.likelihoods, block)
        facts = {
            **system.facts,
            "unknown": _num_unknown(statistics) if system.scored else None,
            **precision_of(system),
        }
        is_compared = place > 0 and _comparable(first, statistics)
        evaluations.append(
            Evaluation(
                system=system.name,
                test=test,
                run=system.run,
                scores=_scores(system.likelihoods, system.reads, block),
                how={"reads": system.reads, **{k: v for k, v in facts.items() if v is not None}},
                against_first=compare_all({TESTED: first}, {TESTED: statistics}) if is_compared else {},
                leakage=leakage,
                without_leaked=_scores(kept, system.reads, block) if any(each.num_tokens for each in kept) else {},
                num_clean=int(clean.sum()),
                members=system.members,
                num_rows=math.ceil(len(test.rows) / block),
            )
        )
    if differ_in_unknown(evaluations):
        warn("these scores cannot be compared: the models treat different numbers of words as unknown.")
    return evaluations


def lines_per_block(test: HeldOut, systems: Sequence[TextSystem]) -> int:
    """1 if every system reads each line alone; otherwise as many as have about `WORDS_PER_BLOCK` words.

    Blocks of a short text are smaller, so that there are at least `MIN_BLOCKS`.
    """
    num_lines = len(test.rows)
    if all("context:line" in system.reads for system in systems if len(system.likelihoods) == num_lines):
        return 1
    num_words = sum(len(line.split()) + 1 for line in test.sources)
    return max(1, min(math.ceil(WORDS_PER_BLOCK * num_lines / num_words), num_lines // MIN_BLOCKS))


def _scores(likelihoods: Sequence[TextLikelihood], reads: str, block: int) -> dict[str, Score]:
    """By the metric's title; with intervals if there are lines to draw."""
    intervals = INTERVALS if len(likelihoods) > block else 0
    scores = score_likelihoods(likelihoods, intervals, reads, block, prefix_of(reads))
    return {METRICS[key].title: score for key, score in scores.items()}


def _require_alike(systems: Sequence[TextSystem]) -> None:
    """Raise UsageError if pseudo-log-likelihoods would be compared with log-likelihoods."""
    masked = [system.name for system in systems if prefix_of(system.reads)]
    if 0 < len(masked) < len(systems):
        raise UsageError(
            f"{', '.join(masked)}: the pseudo-log-likelihood of a masked language model is not the probability of a "
            "text and cannot be compared with the other scores. Evaluate it separately."
        )


def _comparable(first: LikelihoodStatistics, other: LikelihoodStatistics) -> bool:
    """Whether the lines have the same bytes, all are possible, and the same number of tokens is unknown.

    A model with more unknown tokens need not predict which words these are.
    """
    a, b = first.rows, other.rows
    alike = a.shape == b.shape and np.array_equal(_num_bytes(first), _num_bytes(other))
    return alike and _num_unknown(first) == _num_unknown(other) and bool(np.isfinite([a, b]).all())


def _num_unknown(statistics: LikelihoodStatistics) -> int:
    return int(TextLikelihood(*statistics.rows.sum(axis=0).tolist()).num_unknown)


def _num_bytes(statistics: LikelihoodStatistics) -> Any:
    """Bytes of each line or block, ends included."""
    return np.array([TextLikelihood(*row).count("byte") for row in statistics.rows.tolist()])
