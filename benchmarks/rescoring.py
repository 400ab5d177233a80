"""Weights of the second score of phrases: w and b of `heed.inference.rescoring`, on validation data.

    python benchmarks/rescoring.py PHRASES TRANSFORMER [TRANSFORMER ...] --src dev.en --ref dev.fr

The best K translations by phrases get the score of phrases + w · (mean log p + b · words). A row for each w has BLEU by
b, with the length of the outputs relative to that of the references. The last row chooses w and b on the lines with
even numbers for those with odd ones, and the other way round.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from heed.api import load
from heed.core.environment import num_cpus
from heed.decoding.hypothesis import single_spaced
from heed.evaluation.test_set import read_parallel
from heed.metrics import output_metric
from heed.metrics.metric import OutputMetric
from heed.nn.device import set_threads

WEIGHTS = (0.1, 0.3, 0.5, 1.0)
BONUSES = (0.0, 1.0, 2.0)
Setting = tuple[float, float]


class Line:
    """The candidates of a line, with their scores [K] and the counts of BLEU [K, 10]: both lengths first."""

    def __init__(
        self, candidates: Sequence[str], scores: Sequence[float], log_probs: Sequence[Sequence[float]], reference: str,
        metric: OutputMetric,
    ) -> None:  # fmt: skip
        self.scores = np.array(scores)
        self.log_probs = np.mean(log_probs, axis=0)
        self.words = np.array([len(each.split()) for each in candidates])
        self.counts = np.array(metric.counts(candidates, [reference] * len(candidates)))

    def chosen(self, setting: Setting) -> np.ndarray:
        """The counts of the best candidate with w and b."""
        w, b = setting
        best: np.ndarray = self.counts[int(np.argmax(self.scores + w * (self.log_probs + b * self.words)))]
        return best


def main() -> None:
    """Translate, score, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phrases", type=Path)
    parser.add_argument("scorers", type=Path, nargs="+")
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--candidates", type=int, default=30, help="K (default 30)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: all cores)")
    given = parser.parse_args()
    set_threads(given.threads or num_cpus())
    test = read_parallel(given.src, given.ref)
    phrases, scorers = load(given.phrases), [load(path).translator for path in given.scorers]
    data = phrases.run.recipe.data
    metric = output_metric("bleu", data.tgt_lang or None, data.tokenised)
    options = phrases.run.recipe.decoding.model_copy(update={"nbest": given.candidates})
    lines: list[Line] = []
    for source, reference, best in zip(
        test.sources, test.references, phrases.hypotheses(list(test.sources), options), strict=True
    ):
        every = [best, *best.alternatives]
        texts = [single_spaced(each.text) for each in every]
        scores = [scorer.score_all(source, texts) for scorer in scorers]
        log_probs = [each for each in scores if each is not None] or [[0.0] * len(texts)]
        lines.append(Line(texts, [each.score for each in every], log_probs, reference, metric))

    def score(setting: Callable[[int], Setting], numbers: Sequence[int]) -> tuple[float, float]:
        """BLEU and the length ratio of some lines; `setting`: w and b of a line."""
        sums = np.sum([lines[i].chosen(setting(i)) for i in numbers], axis=0)
        return metric.value(sums), sums[0] / sums[1]

    everything = range(len(lines))
    print(f"| w | {' | '.join(f'b = {b:g}' for b in BONUSES)} |")
    print("| --- |" + " ---: |" * len(BONUSES))
    print("| phrases alone | {:.2f} ({:.3f}) |".format(*score(lambda _: (0.0, 0.0), everything)) + " |" * 2)
    for w in WEIGHTS:
        cells = ["{:.2f} ({:.3f})".format(*score(lambda _, w=w, b=b: (w, b), everything)) for b in BONUSES]  # type: ignore[misc]
        print(f"| {w:g} | {' | '.join(cells)} |")
    halves = [everything[0::2], everything[1::2]]
    best_of = [max(product(WEIGHTS, BONUSES), key=lambda setting: score(lambda _: setting, half)[0]) for half in halves]
    crossed = score(lambda i: best_of[1 - i % 2], everything)
    print("| chosen on the other half | {:.2f} ({:.3f}) |".format(*crossed) + " |" * 2)


if __name__ == "__main__":
    main()
