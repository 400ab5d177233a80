"""Placeholders: addresses and format fields, which a translation keeps as they are."""

from __future__ import annotations

import re
from collections import Counter

_STYLE = r"an?\d{1,2}|pos\(|move\(|org\(|fade?\(|[iubs][01]|[1-4]?[ca]&|fn[A-Z]|fs\d|fr[xyz]?-?\d|k[of]?\d"
"""Beginnings of style codes in subtitles; {\\bf ...} is TeX."""

_PLACEHOLDER = re.compile(
    rf"\{{\\(?:{_STYLE})[^{{}}\n]{{0,80}}\}}|"  # {\\an8} {\\pos(1,2)}
    r"\{\{[^{}\n]{1,80}\}\}|\$\{[^{}\n]{1,80}\}|\{[\w.:!-]{0,80}\}"  # {{name}} ${name} {0} {name:.2f}
    r"|(?<![\w%])%(?:\(\w{1,80}\)|\d{1,2}\$)?[-+0]?\d{0,3}(?:\.\d{1,2})?[sdifuxg@](?!\w)"  # %s %(name)s %1$s %.2f %@
    r"|https?://[^\s<>\"]*[^\s<>\".,;:!?)\]}'’”»]"
    r"|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"
)


def placeholders(text: str) -> Counter[str]:
    """The placeholders of a text, and how often each occurs."""
    return Counter(match[0] for match in _PLACEHOLDER.finditer(text))


def are_kept(source: str, target: str) -> bool:
    """Whether each placeholder of the source occurs in the target at least as often."""
    return all(target.count(text) >= count for text, count in placeholders(source).items())


def placeholder_ranges(text: str) -> list[tuple[int, int]]:
    """Their places in a text: the first character, and the one after the last."""
    return [match.span() for match in _PLACEHOLDER.finditer(text)]
