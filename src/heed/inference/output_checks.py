"""Output checks: flags, replacements of flagged outputs, and calibrated confidences.

The guard flags translations that cannot be right, which every translation model occasionally produces:

| flag    | the output                                                                                        |
|---------|---------------------------------------------------------------------------------------------------|
| `loop`  | repeats a run of words or characters in immediate succession, more often than the source does     |
| `copy`  | is nearly the source, though the languages differ; names, numbers and addresses may be copied      |
| `empty` | has no text, though the source has                                                                |
| `long`  | is longer than any validation pair makes likely                                                   |
| `short` | is shorter than any validation pair makes likely                                                  |

It compares the source with the output and nothing else, so a flag does not depend on model, search or batch. The next
unflagged hypothesis of the beam replaces a flagged one; the guard favours precision, since a false alarm costs a good
output its place.

Confidence is the probability that an output is good: that its sentence chrF against the reference is at least the
median of the validation sentences, so that half of them are good. It has four features, which every search provides
whatever its beam: the mean log-probability of a token, that of the least likely token, the logarithm of the number of
tokens, and whether the guard flagged it. The margin over the second-best hypothesis is not a feature, since it depends
on when the search stopped. Defective outputs (flagged without a replacement, or cut off) are rare on validation data,
and the model is confident in loops, so their probability has an upper limit of its own. `heed evaluate --calibrate`
writes the calibration to `confidence.json` in the run folder.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Literal

from pydantic import Field

from heed.core.config import Config
from heed.core.errors import DataError
from heed.core.run_files import RunFiles
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.text.language.scripts import is_unseparated
from heed.text.tokenizers import Tokenizer

MAX_PERIOD = 30
"""Longest run, in words or characters, whose repetition is detected."""
SLACK = 10
"""Characters added to both lengths before their ratio is taken, since short texts vary more."""
COPIED = 0.8
"""Share of words taken from the source that makes an output a copy."""
MIN_COPIED = 4
"""Minimum number of words of a copy; fewer words may be the same in both languages."""

CONFIDENCE = "confidence.json"
FEATURES = ("mean log-probability", "least log-probability", "log length", "flagged")
NO_REPEAT = 2
"""n of the n-grams that may not repeat when a whole beam loops ..."""
NO_REPEAT_CHARACTERS = 8
"""... and where the tokens are characters: pairs of them repeat in any sentence."""

Best = dict[Request, Hypothesis]
Searcher = Callable[[Sequence[Request], SearchOptions], Best]
"""Searches the best hypothesis of each request, with its alternatives."""
Texts = Callable[[Sequence[Request]], list[str]]
"""The text of each request's source."""
Features = tuple[float, float, float, float]

_HYPHEN = re.compile(r"(?<=\w)[-\u2010-\u2015](?=\w)")
_NUMBER = re.compile(r"\d(?:[^\w\n]?\d)*")  # groups of digits, with at most one separator between two


@dataclass(frozen=True)
class Guard:
    """The flags, for the outputs of one run."""

    shortest: float = 0.0
    """Smallest plausible (characters of the output + SLACK) / (characters of the source + SLACK) ..."""
    longest: float = math.inf
    """... and the largest."""
    same_language: bool = False
    """Whether source and target are the same language, whose variants may have equal sentences."""
    pairs: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)
    """The validation pairs."""

    @staticmethod
    def of_pairs(pairs: Sequence[tuple[str, str]], same_language: bool = False) -> Guard:
        """The guard for a run with these validation pairs (source, reference).

        Lengths may differ by twice the extremes of the pairs, the outermost hundredth on either side excluded.
        """
        if not pairs:
            return Guard(same_language=same_language)
        ratios = sorted(_length_ratio(src, ref) for src, ref in pairs)
        excluded = len(ratios) // 100
        return Guard(ratios[excluded] / 2, ratios[-1 - excluded] * 2, same_language, tuple(pairs))

    @cached_property
    def may_copy(self) -> bool:
        """Whether copies are legitimate: the languages are the same, or more than a tenth of the references are copies.

        They are counted when an output is a copy for the first time: most translations have none, and start sooner.
        """
        if self.same_language:
            return True
        return sum(_is_copy(src, ref) for src, ref in self.pairs) > len(self.pairs) / 10

    def flags(self, source: str, output: str) -> tuple[str, ...]:
        """The flags of an output, in the order of the table."""
        if not output.strip():
            return ("empty",) if source.strip() else ()
        ratio = _length_ratio(source, output)
        checks = {
            "loop": is_loop(source, output),
            "copy": _is_copy(source, output) and not self.may_copy,
            "long": ratio > self.longest,
            "short": ratio < self.shortest,
        }
        return tuple(flag for flag, applies in checks.items() if applies)


def _length_ratio(source: str, output: str) -> float:
    return (len(output.strip()) + SLACK) / (len(source.strip()) + SLACK)


@dataclass(frozen=True)
class _Limit:
    """Maximum number of times in succession that a run of `shortest` to `longest` units may occur."""

    shortest: int
    longest: int
    times: int

    def exceeded(self, units: Sequence[str]) -> Iterator[tuple[int, int]]:
        """(length, number of occurrences) of the runs that occur too often.

        A run of p units that occurs one time too often has at least `times` * p units that occur before.
        """
        num_repeated = len(units) - len(set(units))
        for period in range(self.shortest, min(self.longest, num_repeated // self.times) + 1):
            same = map(str.__eq__, units, units[period:])
            streak = max((sum(1 for _ in run) for equal, run in groupby(same) if equal), default=0)
            if streak // period + 1 > self.times:
                yield period, streak // period + 1

    def most(self, texts: Sequence[str]) -> int:
        """The largest number of occurrences beyond the limit in any of the texts, by characters; 0 if none."""
        return max((times for text in texts for _, times in self.exceeded(text)), default=0)


_BETWEEN_SIGNS = _Limit(1, 1, 2)
_WORDS = (_Limit(1, 1, 3), _Limit(2, 3, 2), _Limit(4, MAX_PERIOD, 1))
_CHARACTERS = (_Limit(1, 1, 7), _Limit(2, MAX_PERIOD, 4))
_FEWEST_REPEATED, _FEWEST_REPEATED_CHARACTERS = (
    min(limit.times * limit.shortest for limit in limits) for limits in ((_BETWEEN_SIGNS, *_WORDS), _CHARACTERS)
)
"""Units that occur before, in the shortest text that exceeds one of these limits."""
_TWICE = _Limit(1, MAX_PERIOD, 1)
_TWICE_UNSEPARATED = _Limit(2, MAX_PERIOD, 1)
"""Of scripts without word separators: one character may occur twice in a word, and two are as long as a word."""
_LONGER = 3
"""A run that the source repeats may be this many times as long in the output, plus one word."""


_SPACES = re.compile(r"\s{8,}")
"""A run of white space that no text has by itself."""


def is_loop(source: str, output: str) -> bool:
    """Whether the output repeats itself in immediate succession, more often than the source does. Spaces count, too.

    A word may occur twice in a row, three times with punctuation between ("die, die die"), a run of two or three words
    twice, a longer one once; within a word a character may occur seven times, a run of characters four times. What the
    source repeats the output may repeat as often, in runs of up to three times as many words plus one: "sorry" becomes
    "es tut mir leid". Groups of digits that form one number in the source count as one word.
    """
    if _SPACES.search(output) and not _SPACES.search(source):
        return True
    words = _words(output, source)
    bare = _bare(words)
    loops: list[tuple[int, int]] = []
    if len(bare) - len(set(bare)) >= _FEWEST_REPEATED:
        loops = [run for phrase in _split_at_signs(words) for run in _BETWEEN_SIGNS.exceeded(phrase)]
        loops += [run for limit in _WORDS for run in limit.exceeded(bare)]
    allowed = _repetitions(source) if loops else []
    if any(all(n > times or length > _LONGER * short + 1 for short, times in allowed) for length, n in loops):
        return True
    return any(
        times > limit.most(_repetitive_words(source))
        for limit in _CHARACTERS
        if (times := limit.most(_repetitive_words(output)))
    )


def _repetitions(source: str) -> list[tuple[int, int]]:
    """(length in words, number of occurrences) of each run that occurs twice or more in succession."""
    unseparated = "".join(char if is_unseparated(char) else " " * (not _is_sign(char)) for char in source)
    runs = list(_TWICE.exceeded(_bare(_HYPHEN.sub(" ", source).split())))
    return runs + [
        ((length + 1) // 2, times)
        for part in unseparated.split()
        for length, times in _TWICE_UNSEPARATED.exceeded(part)
    ]


def _words(text: str, source: str) -> list[str]:
    """The words with their punctuation; adjacent groups of digits are joined if they form one number in the source."""
    split = text.split()
    if not any(map(str.isdigit, split)):
        return split
    numbers = ["".join(filter(str.isdigit, number)) for number in _NUMBER.findall(source)]
    words: list[str] = []
    for are_digits, group in groupby(split, str.isdigit):
        parts = list(group)
        joined = "".join(parts)
        words += [joined] if are_digits and any(joined in number for number in numbers) else parts
    return words


def _bare(words: Sequence[str]) -> list[str]:
    """In lower case, without punctuation at the ends unless there is nothing else."""
    return [_strip_signs(word).lower() or word for word in words]


def _split_at_signs(words: Sequence[str]) -> list[list[str]]:
    """The bare words between punctuation marks."""
    phrases: list[list[str]] = [[]]
    for word in words:
        phrases[-1].append(word)
        if _is_sign(word[-1]):
            phrases.append([])
    return [_bare(phrase) for phrase in phrases]


def _repetitive_words(text: str) -> list[str]:
    """Words in which characters can occur too often; in scripts without word separators, sentences."""
    return [word for word in text.split() if len(word) - len(set(word)) >= _FEWEST_REPEATED_CHARACTERS]


def _is_copy(source: str, output: str) -> bool:
    """Whether most words of the output are those of the source; only words that need translation count."""
    words = _translatable(output)
    common = Counter(words) & Counter(_translatable(source))
    return len(words) >= MIN_COPIED and sum(common.values()) >= COPIED * len(words)


def _translatable(text: str) -> list[str]:
    """The bare words that are not names (capitalised), numbers or addresses.

    In a text all in capitals every word counts; without word separators each character is a word.
    """
    words = text.split()
    if not text.isascii():
        words = [part for word in words for part in (word if any(map(is_unseparated, word)) else [word])]
    words = [word for word in map(_strip_signs, words) if word and (word.isalpha() or not _is_address(word))]
    plain = [word for word in words if not word[0].isupper()]
    return plain if plain else [word.lower() for word in words if text.upper() == text]


def _is_address(word: str) -> bool:
    """Whether it is a number or an address."""
    return any(char.isdigit() or char in "@/._:" for char in word)


def _strip_signs(word: str) -> str:
    if word.isalnum():  # most words
        return word
    start, end = 0, len(word)
    while start < end and _is_sign(word[start]):
        start += 1
    while start < end and _is_sign(word[end - 1]):
        end -= 1
    return word[start:end]


def _is_sign(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS"


def features(hypothesis: Hypothesis) -> Features:
    """The values of FEATURES."""
    steps = hypothesis.token_log_probs
    if not steps:  # cut off before its first token
        return (hypothesis.log_prob, hypothesis.log_prob, 0.0, float(bool(hypothesis.flags)))
    mean = math.fsum(steps) / len(steps)
    return (mean, min(steps), math.log(len(steps)), float(bool(hypothesis.flags)))


def is_defective(hypothesis: Hypothesis) -> bool:
    """Whether an output is flagged and not replaced, or did not end."""
    return (bool(hypothesis.flags) and not hypothesis.fallback) or not hypothesis.finished


class Confidence(Config):
    """A logistic regression on the features, a limit for defective outputs, and their origin."""

    format: Literal[1] = 1
    """Version of the file format."""
    mean: Features
    """Mean of each feature on the validation data."""
    scale: Features
    """Standard deviation of each feature."""
    weights: Features
    """Weights of the standardised features."""
    bias: float
    """Intercept of the regression."""
    amiss_good: float = 0.1
    """The limit: the share of good outputs among the defective ones on validation, with one good and nine bad added."""
    good_chrf: float
    """Smallest sentence chrF of a good translation: the median on validation."""
    num_sentences: int = Field(ge=1)
    """Number of validation sentences."""
    beam_size: int = Field(ge=1)
    """Beam size of the search used for calibration."""
    calibration_error: float
    """Expected calibration error, by cross-validation."""

    def of(self, hypothesis: Hypothesis) -> float:
        """The probability that a hypothesis is good."""
        rows = zip(features(hypothesis), self.mean, self.scale, self.weights, strict=True)
        total = self.bias + sum(weight * (value - mean) / scale for value, mean, scale, weight in rows)
        probability = 0.5 * (1 + math.tanh(0.5 * total))
        return min(probability, self.amiss_good) if is_defective(hypothesis) else probability

    def write(self, folder: Path) -> Path:
        """Write to a run folder; returns the path."""
        with RunFiles(folder).write(CONFIDENCE, "w") as file:
            file.write(self.model_dump_json(indent=1) + "\n")
        return folder / CONFIDENCE

    @staticmethod
    def read(folder: Path) -> Confidence | None:
        """Read from a run folder; None if it has none. Raises DataError for a damaged file."""
        files, advice = RunFiles(folder), "Delete it, or write a new one with `heed evaluate RUN --calibrate`."
        if not files.has(CONFIDENCE):
            return None
        try:
            return Confidence.model_validate_json(files.read(CONFIDENCE, otherwise=advice))
        except ValueError as error:
            where = folder / CONFIDENCE
            raise DataError(
                f"{where} is damaged or was written by an incompatible version of heed. {advice}"
            ) from error


@dataclass(frozen=True)
class OutputChecks:
    """Checks of a run's outputs, and other information about them than scores. Each part is optional."""

    guard: Guard | None = None
    confidence: Confidence | None = None
    tgt_lang: str = ""
    """The target language, for metrics that split words."""
    can_avoid_loops: bool = True
    """Whether the search can be made again without repeated n-grams."""

    def flagged(self, best: Best, texts: Texts) -> Best:
        """The hypotheses of the search with their flags."""
        if self.guard is None:
            return best
        flags = zip(
            best.items(), map(self.guard.flags, texts(list(best)), (h.text for h in best.values())), strict=True
        )
        return {request: replace(h, flags=of_text) if of_text else h for (request, h), of_text in flags}

    def apply(self, best: Best, texts: Texts, options: SearchOptions, no_repeat: int, searcher: Searcher) -> Best:
        """The best hypotheses, which have their flags, with replacements and confidences.

        `no_repeat`: see `fallback_searches`.
        """
        flags = {request: hypothesis.flags for request, hypothesis in best.items() if hypothesis.flags}
        if flags and self.guard is not None and options.guard:
            no_repeat = no_repeat if self.can_avoid_loops else 0
            best = best | self._replacements(
                self.guard, {request: best[request] for request in flags}, texts, options, no_repeat, searcher
            )
        if self.confidence is not None and not options.sample:
            # Flags are a feature even where they are not shown.
            best = {request: replace(h, confidence=self.confidence.of(h)) for request, h in best.items()}
        if options.guard:
            return best
        return best | {request: replace(best[request], flags=()) for request in flags}

    @staticmethod
    def _replacements(
        guard: Guard, flagged: Best, texts: Texts, options: SearchOptions, no_repeat: int, searcher: Searcher
    ) -> Best:
        """The best hypothesis of the beam without a flag in place of each flagged one, if there is one.

        Where the best one was cut off, the beam has none that ended, so it is not searched for another.
        """
        sources = dict(zip(flagged, texts(list(flagged)), strict=True))
        replaced: Best = {}
        for fallback, flag in fallback_searches(options, no_repeat):
            again = [
                request
                for request, h in flagged.items()
                if request not in replaced and (flag in h.flags if flag else h.finished)
            ]
            for request, hypothesis in searcher(again, fallback).items():
                for other in (hypothesis, *hypothesis.alternatives):
                    if other.finished and not guard.flags(sources[request], other.text):
                        replaced[request] = _replaced(flagged[request], other, options.nbest)
                        break
        return replaced


def _replaced(best: Hypothesis, chosen: Hypothesis, nbest: int) -> Hypothesis:
    """A hypothesis in place of the best, which becomes the first of the alternatives."""
    others = [replace(h, alternatives=(), flags=()) for h in (best, *best.alternatives) if h.text != chosen.text]
    return replace(chosen, alternatives=tuple(others[: nbest - 1]), flags=best.flags, fallback=True)


def no_repeat_size(tokenizer: Tokenizer) -> int:
    """Size of the n-grams that do not repeat in an output without loops."""
    most = tokenizer.max_token_characters
    return NO_REPEAT if most is None else NO_REPEAT_CHARACTERS // most


def fallback_searches(options: SearchOptions, no_repeat: int = NO_REPEAT) -> list[tuple[SearchOptions, str]]:
    """Searches to run when the best hypothesis is flagged, and the flag that each is for (empty: any).

    First the whole beam, with the same best hypothesis; then, if all of it loops, greedily without a repeated n-gram of
    size `no_repeat` (0: no such search), which every engine can do. Greedy search and sampling have no fallback.
    """
    if options.sample or options.width == 1:
        return []
    nbest = options.num_searched if options.diversity else options.width  # the groups of a diverse beam stay the same
    whole = options.model_copy(update={"nbest": nbest})
    if not no_repeat:
        return [(whole, "")]
    size = min(options.no_repeat or no_repeat, no_repeat)
    greedy = {"beam_size": 1, "nbest": 1, "mbr": "", "diversity": 0.0, "no_repeat": size}
    return [(whole, ""), (options.model_copy(update=greedy), "loop")]
