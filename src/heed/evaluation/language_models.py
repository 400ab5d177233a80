"""What are language models worth on a text? One table over any mixture of them: counted, trained, and compressors.

Each says how likely every line is; the rest follows, whatever a model's tokens are and however it reads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from heed.core.errors import UsageError
from heed.decoding.text_scorer import ScoredText, TextScorer
from heed.evaluation.dynamic import DynamicOptions, make_dynamic_reader
from heed.evaluation.leakage import check_leakage
from heed.evaluation.scoring import INTERVALS, Evaluation, precision_of, unseen
from heed.evaluation.systems import HeldOut
from heed.metrics.likelihood import LikelihoodStatistics, TextLikelihood
from heed.metrics.score import Score
from heed.metrics.scoring import score_likelihoods
from heed.metrics.significance import Comparison, compare
from heed.run import Run
from heed.statistical.compressors import COMPRESSORS, compressed_bits
from heed.text.normalise import Normaliser
from heed.text.readers import Errors, read_text
from heed.training.journal import read_journal

WORDS_PER_BLOCK, MIN_BLOCKS = 500, 20
"""Of the blocks of neighbouring lines that are drawn together where a model reads across lines."""


@dataclass(frozen=True)
class TextSystem:
    """What a system says about a test text."""

    name: str
    likelihoods: Sequence[TextLikelihood]
    """One for each line; or one for the whole text, of a system that knows no lines."""
    reads: str
    """The signature of how it reads."""
    run: Run | None = None
    scored: ScoredText | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else the table shows: `parameters`, `training_perplexity`."""
    members: Sequence[Run] = ()
    """The runs of a mixture."""


def read_by(run: Run, test: HeldOut, scorer: TextScorer, name: str = "") -> TextSystem:
    """What a run says, read in the scorer's way."""
    scored = scorer.score(test.sources)
    facts = {"parameters": run.num_parameters, "training_perplexity": training_perplexity(run)}
    return TextSystem(name or str(run.folder), scored.likelihoods(), scorer.signature, run, scored, facts)


def dynamic_scorer(run: Run, options: DynamicOptions) -> TextScorer:
    """The run as a model that goes on learning from the text, whose weights are not packed."""
    reader = make_dynamic_reader(run.model, run.device, options, run.training_text)
    return TextScorer(reader, run.tokenizers["tgt"], run.recipe.data.normaliser, run.recipe.data.line_end)


def training_perplexity(run: Run) -> float | None:
    """Perplexity per token of the training text, at the validation whose weights were kept."""
    kept = [event for event in read_journal(run.folder) if event["event"] == "validation" and event.get("best")]
    value = kept[-1].get("training_perplexity") if kept else None
    return float(value) if isinstance(value, int | float) else None


def mixture(systems: Sequence[TextSystem]) -> TextSystem:
    """All systems as one: the mean of the probabilities that they give each token.

    Raises UsageError where their tokens are not the same.
    """
    texts = [system.scored for system in systems if system.scored is not None]
    first = texts[0]
    if len(texts) < len(systems) or not all(_same_tokens(systems[0], system) for system in systems):
        raise UsageError(
            "--ensemble needs runs with the same tokens, and these cut the text in different ways: train one with "
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
    """Whether both have the same pieces, whatever their numbers, and cut the text into the same ones."""
    if one.run is None or other.run is None or one.scored is None or other.scored is None:
        return False
    mine, theirs = (system.tokenizers["tgt"].vocabulary for system in (one.run, other.run))
    if {*mine.pieces} != {*theirs.pieces}:
        return False
    number = np.array([mine.id(piece) for piece in theirs.pieces])
    return np.array_equal(one.scored.text.ids, number[other.scored.text.ids])


def compressed(
    test: HeldOut, normaliser: Normaliser, primer: Path | None = None, errors: Errors = "strict"
) -> list[TextSystem]:
    """What general compressors need for the lines with their line breaks; with a primer, the same behind that text."""
    lines = [normaliser.apply(line) for line in test.sources]
    seen = [normaliser.apply(line) for line in read_text(primer, errors)] if primer else []
    counts = sum((TextLikelihood.of_sentence(line, 0.0, len(line.encode()) + 1) for line in lines), TextLikelihood())
    found = []
    for behind in [[], *([seen] if primer else [])]:
        for name in COMPRESSORS:
            bits = compressed_bits(name, _joined(lines), _joined(behind))
            reads = "context:file" + (f"|primer:{primer.name}" if primer and behind else "")
            total = replace(counts, log_prob_sum=-bits * math.log(2))
            found.append(TextSystem(name + " primed" * bool(behind), [total], reads))
    return found


def _joined(lines: Sequence[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def evaluate_texts(test: HeldOut, systems: Sequence[TextSystem]) -> list[Evaluation]:
    """Perplexities and bits of each; those after the first are compared with it by bits per byte."""
    leaks = [check_leakage(system.run, test.rows) if system.run else None for system in systems]
    clean = unseen(test, leaks)
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
            **precision_of(system.run, system.members),
        }
        evaluations.append(
            Evaluation(
                system=system.name,
                test=test,
                run=system.run,
                scores=_scores(system.likelihoods, system.reads, block),
                how={"reads": system.reads, **{k: v for k, v in facts.items() if v is not None}},
                against_first=_compared(first, statistics) if place else {},
                leakage=leakage,
                without_leaked=_scores(kept, system.reads, block) if kept else {},
                num_clean=int(clean.sum()),
                members=system.members,
                num_rows=math.ceil(len(test.rows) / block),
            )
        )
    return evaluations


def lines_per_block(test: HeldOut, systems: Sequence[TextSystem]) -> int:
    """1 where every system reads each line alone; else enough for about `WORDS_PER_BLOCK` words with the ends.

    Of a short text blocks are smaller, so that there are at least `MIN_BLOCKS`.
    """
    num_lines = len(test.rows)
    if all(system.reads == "context:line" for system in systems if len(system.likelihoods) == num_lines):
        return 1
    num_words = sum(len(line.split()) + 1 for line in test.sources)
    return max(1, min(math.ceil(WORDS_PER_BLOCK * num_lines / num_words), num_lines // MIN_BLOCKS))


def _scores(likelihoods: Sequence[TextLikelihood], reads: str, block: int) -> dict[str, Score]:
    """With intervals where there are lines to draw."""
    intervals = INTERVALS if len(likelihoods) > block else 0
    return {score.name: score for score in score_likelihoods(likelihoods, intervals, reads, block).values()}


def _compared(first: LikelihoodStatistics, other: LikelihoodStatistics) -> dict[str, Comparison]:
    """Only with lines that are counted alike, and not where one holds a line impossible: there is nothing to test.

    Nor where one says "unknown" of more words than the other: it need not say which words these are.
    """
    a, b = first.rows, other.rows
    alike = a.shape == b.shape and len(a) > 1 and np.array_equal(_num_bytes(first), _num_bytes(other))
    alike = alike and _num_unknown(first) == _num_unknown(other)
    return {"bits per byte": compare(first, other)} if alike and np.isfinite([a, b]).all() else {}


def _num_unknown(statistics: LikelihoodStatistics) -> int:
    return int(TextLikelihood(*statistics.rows.sum(axis=0).tolist()).num_unknown)


def _num_bytes(statistics: LikelihoodStatistics) -> Any:
    """Bytes of each line or block, with the ends."""
    return np.array([TextLikelihood(*row).count("byte") for row in statistics.rows.tolist()])
