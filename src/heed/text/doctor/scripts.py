"""In which script is a line written, and does a word mix letters of two that look alike?"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence


class _ScriptOf(dict[str, str]):
    """The script of each character, "" for one that is no letter or belongs to none; found once per character."""

    def __missing__(self, char: str) -> str:
        words = unicodedata.name(char, "").replace("-", " ").split() if char.isalpha() else []
        if words[:1] in (["FULLWIDTH"], ["HALFWIDTH"]):
            del words[0]
        first = words[0] if words else ""
        script = _NAMES.get(first, first.title())
        self[char] = script
        return script


# The first word of a character's name is its script, but for these.
_EAST_ASIAN = "Han or Kana"
_NAMES = {
    **dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC", "KANGXI"), _EAST_ASIAN),
    **dict.fromkeys(("MODIFIER", "MATHEMATICAL", "FEMININE", "MASCULINE", "MICRO", "DOUBLE", "SCRIPT", "BLACK"), ""),
    **dict.fromkeys(("ANGSTROM", "KELVIN", "OHM", "ALEF", "BET", "GIMEL", "DALET", "PLANCK", "INFORMATION"), ""),
}
_SCRIPT_OF = _ScriptOf()
_KANA = re.compile("[\u3040-\u30ff]")

_LATIN = "A-Za-zÀ-ÖØ-öø-ɏ"
_GREEK_ALIKE = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο"  # no others: "µm" and "κB" are right
_MIXED_WORD = re.compile(
    rf"[{_LATIN}][\u0400-\u052f]|[\u0400-\u052f][{_LATIN}]"
    rf"|[{_LATIN}][{_GREEK_ALIKE}]|[{_GREEK_ALIKE}][{_LATIN}]"
)


def main_script(line: str) -> str | None:
    """The script that most letters of a line are in: "Latin", "Cyrillic", "Han or Kana", ...; None without letters."""
    scripts = {_SCRIPT_OF[char] for char in set(line)} - {""}
    if len(scripts) > 1:
        counts = Counter(map(_SCRIPT_OF.__getitem__, line))
        return max(scripts, key=lambda script: (counts[script], script))
    return next(iter(scripts), None)


def language_by_script(lines: Sequence[str]) -> str:
    """The language that most lines are in, of those without blanks between words: their scripts tell it.

    Empty for all others; English and German have the same letters. Japanese is Chinese characters with its own between.
    """
    scripts = Counter(main_script(line) for line in lines)
    script, number = max(scripts.items(), key=lambda item: item[1], default=(None, 0))
    if script is None or 2 * number <= len(lines):
        return ""
    if script == _EAST_ASIAN:
        num_with_kana = sum(_KANA.search(line) is not None for line in lines)
        return "ja" if 5 * num_with_kana > len(lines) else "zh"
    return {"Thai": "th", "Lao": "lo", "Khmer": "km", "Myanmar": "my"}.get(script, "")


def mixed_word(line: str) -> int | None:
    """Where a Latin letter stands right beside a Cyrillic one, or a Greek one of the same look; None: nowhere."""
    match = _MIXED_WORD.search(line)
    return match.start() if match else None
