"""Scripts of characters and lines, which of them write no spaces, and their languages."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache

EAST_ASIAN = "Han or Kana"
"""Chinese characters and the two syllabaries of Japanese, which are mixed in one text."""

UNSPACED_BLOCKS: dict[str, tuple[tuple[int, int], ...]] = {
    "Thai": ((0x0E00, 0x0E7F),),
    "Lao": ((0x0E80, 0x0EFF),),
    "Tibetan": ((0x0F00, 0x0FFF),),
    "Myanmar": ((0x1000, 0x109F),),
    "Khmer": ((0x1780, 0x17FF),),
    EAST_ASIAN: (
        (0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x20000, 0x3FFFF),
    ),
}  # fmt: skip
"""Scripts that write no space between words, and their blocks of Unicode, first and last code point."""
_HANGUL = (0xAC00, 0xD7AF)
UNSEPARATED = (  # Thai to Burmese, jamo, Khmer, Han and kana, Yi, Hangul, wide and half-width forms
    "\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    "\U00020000-\U0003ffff"
)
"""For the brackets of a pattern: the characters of these scripts and Hangul, with their punctuation."""

_LANGUAGES = {
    "Arabic": "ar fa ps ur",
    "Armenian": "hy",
    "Bengali": "bn",
    "Cyrillic": "be bg kk ky mk mn ru tg uk",
    "Devanagari": "hi mr ne",
    "Ethiopic": "am ti",
    "Georgian": "ka",
    "Greek": "el",
    "Gujarati": "gu",
    "Gurmukhi": "pa",
    EAST_ASIAN: "ja zh",
    "Hangul": "ko",
    "Hebrew": "he",
    "Kannada": "kn",
    "Khmer": "km",
    "Lao": "lo",
    "Malayalam": "ml",
    "Myanmar": "my",
    "Sinhala": "si",
    "Tamil": "ta",
    "Telugu": "te",
    "Thai": "th",
}
SCRIPT_OF_LANGUAGE = {code: script for script, codes in _LANGUAGES.items() for code in codes.split()}
"""The script of each language that is written in one script other than Latin."""

JOINERS = "\u200c\u200d"
"""The zero-width non-joiner and joiner, which stand inside words of Persian and of Indic languages."""

# The first word of a character's Unicode name is its script, with these exceptions.
_NAMES = {
    **dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC", "KANGXI"), EAST_ASIAN),
    **dict.fromkeys(("MODIFIER", "MATHEMATICAL", "FEMININE", "MASCULINE", "MICRO", "DOUBLE", "SCRIPT", "BLACK"), ""),
    **dict.fromkeys(("ANGSTROM", "KELVIN", "OHM", "ALEF", "BET", "GIMEL", "DALET", "PLANCK", "INFORMATION"), ""),
}
_KANA = re.compile("[\u3040-\u30ff]")
# Han, kana and their punctuation; not Hangul, Thai, Khmer or Burmese, which write a space between sentences.
_EAST_ASIAN_TEXT = re.compile(
    "[\u2e80-\u312f\u3190-\u31ff\u3300-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff01-\uff9f\U00020000-\U0003ffff]"
)

_LATIN = "A-Za-zÀ-ÖØ-öø-ɏ"
_GREEK_LOOKALIKES = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο"  # these only: "µm" and "κB" are correct
_MIXED_WORD = re.compile(
    rf"[{_LATIN}][\u0400-\u052f]|[\u0400-\u052f][{_LATIN}]"
    rf"|[{_LATIN}][{_GREEK_LOOKALIKES}]|[{_GREEK_LOOKALIKES}][{_LATIN}]"
)


@cache
def is_unspaced(char: str) -> bool:
    """Whether a character belongs to a script that writes no space between words."""
    return any(first <= ord(char) <= last for blocks in UNSPACED_BLOCKS.values() for first, last in blocks)


@cache
def is_unseparated(char: str) -> bool:
    """As `is_unspaced`, or Hangul, whose words carry their particles: a dictionary word may begin or end anywhere."""
    return is_unspaced(char) or _HANGUL[0] <= ord(char) <= _HANGUL[1]


def is_east_asian(char: str) -> bool:
    """Whether a character is Han, kana or their punctuation, between whose sentences no space is written."""
    return _EAST_ASIAN_TEXT.match(char) is not None


def is_joined(before: str, after: str) -> bool:
    """Whether a character is shown as one with the character before it: a mark, a joiner, or what a joiner joins."""
    return unicodedata.category(after).startswith("M") or after in JOINERS or before == "\u200d"


@cache
def script_of(char: str) -> str:
    """The script of a letter: "Latin", "Cyrillic", "Han or Kana", ...; empty for any other character."""
    words = unicodedata.name(char, "").replace("-", " ").split() if char.isalpha() else []
    if words[:1] in (["FULLWIDTH"], ["HALFWIDTH"]):
        del words[0]
    return _NAMES.get(words[0], words[0].title()) if words else ""


def main_script(line: str) -> str | None:
    """The script of most letters of a line; None for a line without letters."""
    scripts = {script_of(char) for char in set(line)} - {""}
    if len(scripts) > 1:
        counts = Counter(map(script_of, line))
        return max(scripts, key=lambda script: (counts[script], script))
    return next(iter(scripts), None)


def language_by_script(lines: Sequence[str]) -> str:
    """The language of most lines, where a script without spaces identifies it: ja, zh, th, lo, km or my.

    Empty for all other languages. East Asian text is Japanese when more than a fifth of the lines have kana.
    """
    scripts = Counter(map(main_script, lines))
    script, number = max(scripts.items(), key=lambda item: item[1], default=(None, 0))
    if script not in UNSPACED_BLOCKS or 2 * number <= len(lines):
        return ""
    if script == EAST_ASIAN:
        num_with_kana = sum(_KANA.search(line) is not None for line in lines)
        return "ja" if 5 * num_with_kana > len(lines) else "zh"
    return _LANGUAGES.get(script or "", "")


def mixed_word(line: str) -> int | None:
    """The position of a Latin letter next to a Cyrillic one, or to a Greek one that looks the same; None if none."""
    match = _MIXED_WORD.search(line)
    return match.start() if match else None
