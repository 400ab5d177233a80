"""Sentences ranked by score: the worst, and samples at fixed places.

They are ranked by chrF, which is defined for the shortest sentences and counts half a correct word as half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heed.decoding.alignment import word_links
from heed.evaluation.test_set import HeldOut
from heed.run import Run


@dataclass(frozen=True)
class ScoredSentence:
    """A line of a test set with its output and score."""

    line: int
    """The line of the test files, or the pair of a file of pairs, counted from 1."""
    chrf: float
    source: str
    output: str
    reference: str
    alignment: str = ""
    """Word links by the model's attention, `0-0 1-2`: source and output, counted from 0."""
    links: str = ""
    """The same links as words: `Two=Zwei dogs=Hunde`."""


def ranked(test: HeldOut, outputs: Sequence[str], chrf: Sequence[float]) -> list[ScoredSentence]:
    """The lines that are not empty on both sides, the worst first; equal scores stay in the order of the file."""
    lines = [i for i, row in enumerate(test.rows) if any(side.strip() for side in row)]
    order = sorted(lines, key=lambda i: (chrf[i], i))
    return [ScoredSentence(i + 1, chrf[i], test.rows[i][0], outputs[i], test.rows[i][-1]) for i in order]


def worst_sentences(
    run: Run | None, outputs: Sequence[str], test: HeldOut, chrf: Sequence[float], number: int
) -> list[ScoredSentence]:
    """The `number` worst sentences; for a run, with the word links of its attention."""
    worst = ranked(test, outputs, chrf)[:number]
    return [_aligned(run, sentence) for sentence in worst] if run else worst


def _aligned(run: Run, sentence: ScoredSentence) -> ScoredSentence:
    source, output = (run.recipe.data.normaliser.apply(text) for text in (sentence.source, sentence.output))
    if not (source.strip() and output.strip()):
        return sentence
    pairs = word_links(run.predictor.translator, source, output)
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
