"""Placeholders and codes: what a translation keeps as it is.

A placeholder is a part of a sentence: a format field, a variable, an address. A code is a text that is not language: an
identifier, a path, a colour, a pattern of dates.
"""

from __future__ import annotations

import re
from collections import Counter

from heed.text.language.scripts import UNSEPARATED

_STYLE = r"an?\d{1,2}|pos\(|move\(|org\(|fade?\(|[iubs][01]|[1-4]?[ca]&|fn[A-Z]|fs\d|fr[xyz]?-?\d|k[of]?\d"
"""Beginnings of style codes in subtitles; {\\bf ...} is TeX."""
_PRINTF_WIDTH = r"[-+0#']?(?:\d{1,3}|\*)?(?:\.(?:\d{1,2}|\*))?"
_ATTACHED = UNSEPARATED + "\u0590-\u0dff\u1200-\u139f\ufb1d-\ufdff\ufe70-\ufefc"
"""And Hebrew, Arabic, Indic and Ethiopic scripts, which attach particles: a placeholder ends before their letters."""
_W = rf"[^\W{_ATTACHED}]"
"""A letter or digit of other scripts, before which `%s` is no placeholder: `100 %süß`."""
_WIDE_SIGNS = "、。，．！？：；「」『』（）【】《》"
_URL_PART = rf"(?<=[/=&#_+-])(?![をはがにでのとへもや을를은는에])(?:(?![{_WIDE_SIGNS}])[{UNSEPARATED}])++"
"""Letters of scripts without spaces in a path, and not a particle after one."""
_IN_URL = rf"(?:[^\s<>\"(){UNSEPARATED}]|{_URL_PART}|\([^\s<>\"(){UNSEPARATED}]{{0,200}}\))"
"""An address ends before other letters of scripts without spaces."""
_PLACEHOLDER = re.compile(
    rf"\{{\\(?:{_STYLE})[^{{}}\n]{{0,80}}\}}|"  # {\\an8} {\\pos(1,2)}
    r"\{\{[^{}\n]{1,80}\}\}|[$%]\{[^{}\n]{1,80}\}"  # {{name}} ${name} %{name}
    r"|\{[\w.:!\[\]-]{0,80}(?::[\w.,<>^=+#%-]{0,30})?\}"  # {0} {name:,.2f} {items[0]} {0:>10}
    r"|\{\w{1,40}, ?(?:number|date|time|ordinal|spellout|duration)\b[^{}\n]{0,80}\}"  # {0, number, integer}
    rf"|%\(\w{{1,80}}\){_PRINTF_WIDTH}[a-zA-Z]|%<\w{{1,80}}>{_PRINTF_WIDTH}[a-zA-Z]"  # %(name)s %<count>d
    r"|%%|%d(?:[x×]%d)+"
    rf"|(?<!\d)%(?:\d{{1,2}}\$)?{_PRINTF_WIDTH}(?:hh?|ll?|[jztL])?[sdifuxg@](?!{_W})"  # %s %1$lu %-5zd %.2f %*d
    rf"|(?<!\d)(?<!\d[ \xa0\u202f])%(?:\d{{1,2}}\$)?{_PRINTF_WIDTH}(?:hh?|ll?|[jztL])?"  # not of `100 %ig`
    rf"(?:[sdifuxg@](?:[a-zA-Z]{{1,2}}(?!{_W})|(?=%))|[a-zA-Z](?!{_W}))"  # %dMB, %s%s; any letter alone: %c %r %Y
    rf"|(?<!{_W})(?<!%)%L?\d{{1,2}}(?!{_W}|%)"  # %1 %L2
    rf"|\$t\([^()\n]{{1,80}}\)|@:(?:{_W}(?:{_W}|\.){{0,80}}{_W}|\([\w.]{{1,80}}\))"  # $t(key) @:linked.key
    rf"|(?<!{_W})\$[a-z_]{_W}{{0,80}}|(?<!\S):[a-z_]{_W}{{1,80}}(?!{_W}|:)"  # $name :name
    rf"|(?<!{_W})(?<!:):[a-z][a-z0-9_+-]{{1,30}}:(?!{_W}|:)"  # :smile:
    r"|\[X\d{1,6}X\]"  # what Weblate sends in place of a code
    r"|</?[a-zA-Z]{1,2}\d{1,4}/?>"  # OmegaT's tags: <b0>, </b0>, <br1/>
    rf"|https?://{_IN_URL}*(?![.,;:!?\]}}'’”»،؛؟۔।॥]){_IN_URL}"
    rf"|(?=[\w.+-]{{1,64}}@)(?:{_W}|[.+-]){{1,64}}@(?:{_W}|-){{1,63}}(?:\.(?:{_W}|-){{1,63}}){{1,8}}"
)
_ORDERED = re.compile(r"%(?![L\d]*\d$)(?!\d+\$)[^%({<]\S*")
_CODE = re.compile(
    r"[\w.\\/@=+-]*[_\\=][\w.\\/@=+-]*"  # btn_ok, C:\dir, a=1
    r"|#(?:[0-9a-fA-F]{3,8}|\d+)"  # #ff0000, #12
    r"|(?:\.{0,2}|~)/[\w./-]+|[\w-]+(?:/[\w.-]+)*/?\.?[\w-]+\.[a-z][a-z0-9]{1,4}"  # /etc/hosts, img/a.png, a.pdf
    r"|v?\d+(?:\.\d+)+\w{0,8}"  # v1.2.3
    r"|[a-z]\w*(?:\.[a-z]\w*){2,}|[a-z]\w+(?:\.[a-zA-Z]\w+)+"  # user.name.first
    r"|(?=.*\d)(?=.*[A-Z])(?!.*[a-z]{2})[A-Za-z0-9.-]+"  # SKU-99-X, M8x40
    r"|[a-z]+\d[a-z0-9.]*",  # btn1, mp3
    re.ASCII,
)
"""A word that only programs use. `and/or`, `20th`, `Top-10`, `U.S.` and `3-year-old` are words."""
_LONGEST_CODE = 200
_DATE_PATTERN = re.compile(
    r"(?:Y{2,4}|y{2,4}|M{1,4}|D{1,2}|d{1,4}|H{1,2}|h{1,2}|m{1,2}|s{1,2}|E{1,4}|[aA])"
    r"(?:[-/.:, ]{1,2}(?:Y{2,4}|y{2,4}|M{1,4}|D{1,2}|d{1,4}|H{1,2}|h{1,2}|m{1,2}|s{1,2}|E{1,4}|[aA]))+"
)
"""`YYYY-MM-DD`, `d. MMM yyyy`, `HH:mm`."""


def placeholders(text: str) -> Counter[str]:
    """The placeholders of a text, and how often each occurs."""
    return Counter(match[0] for match in _PLACEHOLDER.finditer(text))


def placeholder_ranges(text: str) -> list[tuple[int, int]]:
    """Their places in a text: the first character, and the one after the last."""
    return [match.span() for match in _PLACEHOLDER.finditer(text)]


def are_kept(source: str, target: str) -> bool:
    """Whether each placeholder of the source occurs in the target as often, and those like `%s` in the same order."""
    counts = placeholders(source)
    if not all(target.count(text) >= count for text, count in counts.items()):
        return False
    ordered = [text for text in counts if is_ordered(text)]
    return len(ordered) < 2 or _in_order(source) == _in_order(target)


def is_ordered(placeholder: str) -> bool:
    """Whether a placeholder gets its value by its place among the others: `%s`, which `%1$s` and `%(name)s` do not."""
    return _ORDERED.fullmatch(placeholder) is not None


def _in_order(text: str) -> list[str]:
    return [match[0] for match in _PLACEHOLDER.finditer(text) if is_ordered(match[0])]


def is_code(text: str) -> bool:
    """Whether a text is an identifier, a path, the name of a file, a colour, a version or a pattern of dates."""
    word = text.strip()
    if _DATE_PATTERN.fullmatch(word) and re.search("yy|YY|HH|hh|mm", word):
        return True
    return len(word) <= _LONGEST_CODE and _CODE.fullmatch(word) is not None


def has_words(text: str) -> bool:
    """Whether there is something to translate: a letter outside of placeholders, in a text that is not a code."""
    return any(map(str.isalpha, _PLACEHOLDER.sub("", text))) and not is_code(text)
