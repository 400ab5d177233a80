"""Which sentences went worst, and which are a fair sample of all?

Sentences are ranked by chrF: it is defined for the shortest ones, and half a word right is half right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heed.decoding.alignment import word_links
from heed.evaluation.systems import HeldOut, System
from heed.run import Run


@dataclass(frozen=True)
class ScoredSentence:
    """One line of a test set as a person reads it."""

    line: int
    """Which line of the test files, or which pair of a file of pairs, counted from 1."""
    chrf: float
    source: str
    output: str
    reference: str
    alignment: str = ""
    """Words that belong together by the model's attention, `0-0 1-2`: source and output, counted from 0."""
    links: str = ""
    """The same in words: `Two=Zwei dogs=Hunde`."""


def ranked(test: HeldOut, outputs: Sequence[str], chrf: Sequence[float]) -> list[ScoredSentence]:
    """All lines, the worst first, of equals the earlier; without those that are empty on both sides."""
    lines = [i for i, row in enumerate(test.rows) if any(side.strip() for side in row)]
    order = sorted(lines, key=lambda i: (chrf[i], i))
    return [ScoredSentence(i + 1, chrf[i], test.rows[i][0], outputs[i], test.rows[i][-1]) for i in order]


def worst_sentences(system: System, test: HeldOut, chrf: Sequence[float], number: int) -> list[ScoredSentence]:
    """The `number` worst; those of a run with the links that its attention makes."""
    worst = ranked(test, system.outputs, chrf)[:number]
    return [_aligned(system.run, sentence) for sentence in worst] if system.run else worst


def _aligned(run: Run, sentence: ScoredSentence) -> ScoredSentence:
    source, output = (run.recipe.data.normaliser.apply(text) for text in (sentence.source, sentence.output))
    if not (source.strip() and output.strip()):
        return sentence
    pairs = word_links(run.translator, source, output)
    words = source.split(), output.split()
    return replace(
        sentence,
        alignment=" ".join(f"{i}-{j}" for i, j in pairs),
        links=" ".join(f"{words[0][i]}={words[1][j]}" for i, j in pairs),
    )


QUANTILES = {"good": (0.95, 0.85), "middle": (0.55, 0.45), "bad": (0.15, 0.05), "worst": (0.0,)}
"""Where the samples of a report stand among all sentences: fixed places, so that nobody picked them."""


def samples(sentences: Sequence[ScoredSentence]) -> list[tuple[str, ScoredSentence]]:
    """Sentences of each kind, good ones first, from all in the order of `ranked`; fewer where there are few."""
    if not sentences:
        return []
    picked = {int(share * len(sentences)): kind for kind, shares in QUANTILES.items() for share in shares}
    return [(kind, sentences[place]) for place, kind in picked.items()]
