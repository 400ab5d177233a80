"""Which parts of a text are to stay as they are: addresses, and what a program will fill in?"""

from __future__ import annotations

import re
from collections import Counter

from heed.documents.marks import Mark

_PLACEHOLDER = re.compile(
    r"\{\{[^{}\n]{1,80}\}\}|\$\{[^{}\n]{1,80}\}|\{[\w.:!-]{0,80}\}"  # {{name}} ${name} {0} {name:.2f}
    r"|\{\\[^{}\n]{1,80}\}"  # {\an8}, of subtitles
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


def without_placeholders(text: str) -> tuple[str, list[Mark]]:
    """The text without its placeholders and the second of two spaces, and the marks that they leave."""
    plain, marks, done = "", list[Mark](), 0
    for match in _PLACEHOLDER.finditer(text):
        plain += _joined(plain, text[done : match.start()])
        done = match.end()
        left, right = text[: match.start()][-1:], text[match.end() :][:1]
        marks.append(Mark(match[0], len(plain), glued_left=bool(left.strip()), glued_right=bool(right.strip())))
    return plain + _joined(plain, text[done:]), marks


def _joined(before: str, text: str) -> str:
    """The text as it goes on behind what is before it, without a second space."""
    return text[1:] if before.endswith(" ") and text.startswith(" ") else text
