"""Is an output one that cannot be right? What every translation model does now and then, and nobody should be sent.

| flag    | the output                                                                                        |
|---------|---------------------------------------------------------------------------------------------------|
| `loop`  | says a run of words or characters again at once, more often than sentences and than the source do   |
| `copy`  | is the source, or nearly, though the languages differ; names, numbers and addresses may be copied   |
| `empty` | has no text, though the source has                                                                  |
| `long`  | is longer than any validation pair makes likely                                                     |
| `short` | is shorter than any validation pair makes likely                                                    |

The rules look at the source and the output alone, so a flag does not depend on model, search or batch. They are made to
be right when they speak: a wrong flag costs a good output its place, which the next hypothesis of the beam without a
flag takes.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from heed.decoding.options import SearchOptions
from heed.text.language.scripts import is_unseparated
from heed.text.tokenizers import Tokenizer
from heed.text.tokenizers.byte_level import Byte
from heed.text.tokenizers.symbols import Character, CharBigram

MAX_PERIOD = 30
"""The longest run, in words or characters, whose repetition is looked for."""

SLACK = 10
"""Characters added to both lengths before their ratio is taken: short texts vary more."""

COPIED = 0.8
"""A share of words taken from the source that makes an output a copy."""

NO_REPEAT = 2
"""Where a whole beam loops: no so many tokens twice ..."""

NO_REPEAT_CHARACTERS = 8
"""... or characters, where these are the tokens: two of them come again in any sentence."""

MIN_COPIED = 4
"""Words that can be copied; fewer may be the same in two languages."""

_HYPHEN = re.compile(r"(?<=\w)[-\u2010-\u2015](?=\w)")
_NUMBER = re.compile(r"\d(?:[^\w\n]?\d)*")
"""One sign or space at most stands between its groups of digits."""


@dataclass(frozen=True)
class Guard:
    """What outputs of one run can look like."""

    shortest: float = 0.0
    """(characters of the output + SLACK) / (characters of the source + SLACK) is at least this ..."""
    longest: float = math.inf
    """... and at most this."""
    may_copy: bool = False
    """Whether source and target are one language, so that a copy is nothing odd."""

    @staticmethod
    def of_pairs(pairs: Sequence[tuple[str, str]], same_language: bool = False) -> Guard:
        """The guard for a run with these validation pairs: source and reference.

        Lengths may go to twice what all but the oddest hundredth of the pairs show on either side. Where a tenth of
        the references are copies, an output may be one.
        """
        if not pairs:
            return Guard(may_copy=same_language)
        ratios = sorted(_length_ratio(src, ref) for src, ref in pairs)
        odd = len(ratios) // 100
        copies = sum(_is_copy(src, ref) for src, ref in pairs)
        return Guard(ratios[odd] / 2, ratios[-1 - odd] * 2, same_language or copies > len(pairs) / 10)

    def flags(self, source: str, output: str) -> tuple[str, ...]:
        """What is wrong with an output, in the order of the table; empty when nothing is."""
        if not output.strip():
            return ("empty",) if source.strip() else ()
        ratio = _length_ratio(source, output)
        checks = {
            "loop": is_loop(source, output),
            "copy": not self.may_copy and _is_copy(source, output),
            "long": ratio > self.longest,
            "short": ratio < self.shortest,
        }
        return tuple(flag for flag, applies in checks.items() if applies)


def fallback_searches(options: SearchOptions, no_repeat: int = NO_REPEAT) -> list[tuple[SearchOptions, str]]:
    """What is searched again where the best hypothesis is flagged, and for which flag alone (empty: for all).

    First the whole beam, whose best hypothesis is the same; and where all of it loops, a beam in which no run of
    `no_repeat` tokens comes twice. Greedy search and draws have nothing to fall back to.
    """
    if options.sample or options.width == 1:
        return []
    nbest = options.num_searched if options.diversity else options.width  # groups of a diverse beam are a choice
    whole = options.model_copy(update={"nbest": nbest})
    return [(whole, ""), (whole.model_copy(update={"no_repeat": min(whole.no_repeat or no_repeat, no_repeat)}), "loop")]


def longest_repeat(tokenizer: Tokenizer) -> int:
    """The tokens of a run that does not come twice in an output that does not loop."""
    if isinstance(tokenizer, Character | Byte):
        return NO_REPEAT_CHARACTERS
    return NO_REPEAT_CHARACTERS // 2 if isinstance(tokenizer, CharBigram) else NO_REPEAT


def _length_ratio(source: str, output: str) -> float:
    return (len(output.strip()) + SLACK) / (len(source.strip()) + SLACK)


@dataclass(frozen=True)
class _Limit:
    """Runs of `first` to `last` units may come so `often`, one time after the other."""

    first: int
    last: int
    often: int

    def runs(self, units: Sequence[str]) -> Iterator[tuple[int, int]]:
        """How long each run is that comes too often, and how often it comes."""
        for period in range(self.first, min(self.last, len(units) // (self.often + 1)) + 1):
            same = map(str.__eq__, units, units[period:])
            streak = max((sum(1 for _ in run) for equal, run in groupby(same) if equal), default=0)
            if streak // period + 1 > self.often:
                yield period, streak // period + 1

    def most(self, units: Sequence[str]) -> int:
        """How often, at most, one of these runs comes; 0 where none comes too often."""
        return max((often for _, often in self.runs(units)), default=0)


_OF_PHRASES = _Limit(1, 1, 2)
_OF_WORDS = (_Limit(1, 1, 3), _Limit(2, 3, 2), _Limit(4, MAX_PERIOD, 1))
_OF_CHARACTERS = (_Limit(1, 1, 7), _Limit(2, MAX_PERIOD, 4))
_ANY = _Limit(1, MAX_PERIOD, 1)
_ANY_OF_CHARACTERS = _Limit(2, MAX_PERIOD, 1)
"""Of scripts that do without spaces; one character may well come twice in a word, and two are as long as one word."""
_LONGER = 3
"""So many times as many words, and one more, a run of the source may have in the output."""


def is_loop(source: str, output: str) -> bool:
    """Whether the output repeats itself at once, more often than the source does.

    One word may come twice in a row, and three times with a sign between ("die, die die"), runs of two or three words
    twice, longer ones once; inside a word one character may come seven times, a run of two or more four times. What
    the source says several times in a row the output may say as often, in runs of up to three times as many words and
    one: "sorry" becomes "es tut mir leid". Groups of digits that the source has in one number are one word.
    """
    words = _words(output, source)
    found = [run for phrase in _phrases(words) for run in _OF_PHRASES.runs(phrase)]
    found += [run for limit in _OF_WORDS for run in limit.runs(_bare(words))]
    said = _said_again(source) if found else []
    if any(all(n > times or length > _LONGER * short + 1 for short, times in said) for length, n in found):
        return True
    for limit in _OF_CHARACTERS:
        often = max(map(limit.most, _long_words(output)), default=0)
        if often and often > max(map(limit.most, _long_words(source)), default=0):
            return True
    return False


def _said_again(source: str) -> list[tuple[int, int]]:
    """The length in words of each run that comes twice or more in a row, and how often it does."""
    joined = "".join(char if is_unseparated(char) else " " * (not _is_sign(char)) for char in source)
    runs = list(_ANY.runs(_bare(_HYPHEN.sub(" ", source).split())))
    return runs + [((length + 1) // 2, n) for part in joined.split() for length, n in _ANY_OF_CHARACTERS.runs(part)]


def _words(text: str, source: str) -> list[str]:
    """The words with their signs; neighbours of nothing but digits are one where the source has them as one."""
    known = ["".join(filter(str.isdigit, number)) for number in _NUMBER.findall(source)]
    words: list[str] = []
    for are_digits, group in groupby(text.split(), str.isdigit):
        parts = list(group)
        joined = "".join(parts)
        words += [joined] if are_digits and any(joined in number for number in known) else parts
    return words


def _bare(words: Sequence[str]) -> list[str]:
    """Without signs around them, in lower case; what is nothing but signs stays."""
    return [_without_signs(word).lower() or word for word in words]


def _phrases(words: Sequence[str]) -> list[list[str]]:
    """The words between signs."""
    phrases: list[list[str]] = [[]]
    for word in words:
        phrases[-1].append(word)
        if _is_sign(word[-1]):
            phrases.append([])
    return [_bare(phrase) for phrase in phrases]


def _long_words(text: str) -> list[Sequence[str]]:
    """Words in which a character can come too often; in scripts that do without spaces, sentences."""
    return [word for word in text.split() if len(word) > 7]


def _is_copy(source: str, output: str) -> bool:
    """Whether most words of the output are those of the source; only what would be translated counts."""
    said = _translatable(output)
    if len(said) < MIN_COPIED:
        return False
    common = Counter(said) & Counter(_translatable(source))
    return sum(common.values()) >= COPIED * len(said)


def _translatable(text: str) -> list[str]:
    """The words without signs around them, in lower case, but for names (capitals), numbers and addresses.

    In a text of capitals alone every word counts; where words are not set apart, each character is one.
    """
    words = [part for word in text.split() for part in (word if any(map(is_unseparated, word)) else [word])]
    words = [word for word in map(_without_signs, words) if word and not any(map(_is_foreign_to_words, word))]
    plain = [word for word in words if not word[0].isupper()]
    return plain if plain else [word.lower() for word in words if text.upper() == text]


def _without_signs(word: str) -> str:
    begin, end = 0, len(word)
    while begin < end and _is_sign(word[begin]):
        begin += 1
    while end > begin and _is_sign(word[end - 1]):
        end -= 1
    return word[begin:end]


def _is_sign(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS"


def _is_foreign_to_words(char: str) -> bool:
    return char.isdigit() or char in "@/._:"
