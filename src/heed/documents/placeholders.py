"""Which parts of a text are to stay as they are: addresses, and what a program will fill in?"""

from __future__ import annotations

import re
from collections import Counter

_STYLE = r"an?\d{1,2}|pos\(|move\(|org\(|fade?\(|[iubs][01]|[1-4]?[ca]&|fn[A-Z]|fs\d|fr[xyz]?-?\d|k[of]?\d"
"""How the style codes of subtitles begin; {\\bf ...} is none, but TeX."""

_PLACEHOLDER = re.compile(
    rf"\{{\\(?:{_STYLE})[^{{}}\n]{{0,80}}\}}|"  # {\\an8} {\\pos(1,2)}
    r"\{\{[^{}\n]{1,80}\}\}|\$\{[^{}\n]{1,80}\}|\{[\w.:!-]{0,80}\}"  # {{name}} ${name} {0} {name:.2f}
    r"|(?<![\w%])%(?:\(\w{1,80}\)|\d{1,2}\$)?[-+0]?\d{0,3}(?:\.\d{1,2})?[sdifuxg@](?!\w)"  # %s %(name)s %1$s %.2f %@
    r"|https?://[^\s<>\"]*[^\s<>\".,;:!?)\]}'’”»]"
    r"|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"
)


def placeholders(text: str) -> Counter[str]:
    """Those of a text, and how often each stands in it."""
    return Counter(match[0] for match in _PLACEHOLDER.finditer(text))


def are_kept(source: str, target: str) -> bool:
    """Whether each placeholder of the source stands in the target, as often."""
    return all(target.count(text) >= count for text, count in placeholders(source).items())


def spans(text: str) -> list[tuple[int, int]]:
    """Where those of a text are: the first character, and the one behind the last."""
    return [match.span() for match in _PLACEHOLDER.finditer(text)]
