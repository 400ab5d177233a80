"""YAML of strings, as programs keep their messages (Rails and others).

Values and elements that are strings are translated, as in JSON (`json_strings.py`); codes, numbers, dates and words for
true and false stay, and so do keys, comments, anchors and what has a tag. A single key at the top that is the source
language becomes the target language. A string keeps its style: plain, in quotes, or a block of lines; a plain one gets
quotes where its translation needs them.

PyYAML, which other dependencies need anyway, tells where each string is; only those places change. Its events build no
objects, so that neither tags nor aliases have an effect. Writers of YAML, also ruamel.yaml, wrap and indent anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from heed.core.errors import DataError
from heed.documents.codes import has_words
from heed.documents.file_format import FileContext, TextFormat
from heed.documents.messages import translate_messages
from heed.documents.text_translator import TextTranslator
from heed.text.language.codes import same_tag

MAX_DEPTH = 100
_RESOLVER = yaml.resolver.Resolver()
_ANCHOR = re.compile(r"&\S+\s+")
_FOLDED = re.compile(r"^([^ \t\n].*)(\n+)(?=[^ \t\n])", re.MULTILINE)
"""A line and its breaks in a block of `>`: one alone means a space, but for those next to lines that are indented."""
_NOT_RAW = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What YAML reads as a line break or does not allow, and JSON writes as it is."""
_TEXT_TAG = "tag:yaml.org,2002:str"


@dataclass(frozen=True)
class _Scalar:
    """A string and its place in the text."""

    begin: int
    end: int
    value: str
    """As it is read; halves of a pair of UTF-16, with which JSON writes emoji, are joined."""
    style: str
    """`'`, `"`, `|`, `>`; empty for a plain one."""


def translate_yaml(text: str, translator: TextTranslator, context: FileContext) -> str:
    """The file with its strings translated. Raises DataError for what is not YAML."""
    strings: list[_Scalar] = []
    tops: list[_Scalar] = []
    try:
        for each, depth, is_key in translator.checked(_scalars(text, context.name)):
            if is_key:
                tops += [each] if depth == 1 else []
            elif has_words(each.value):
                strings.append(each)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = f":{line + 1}" if line is not None else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise DataError(f"{context.name}{where}: not YAML ({problem}).") from error
    outputs = translate_messages([each.value for each in strings], translator)
    edits = [
        (each.begin, each.end, _written(each, output, text))
        for each, output in zip(strings, outputs, strict=True)
        if output != each.value
    ]
    sides = context.sides
    if len(tops) == 1 and sides.src_lang and sides.tgt_lang and same_tag(sides.src_lang, tops[0].value):
        edits.insert(0, (tops[0].begin, tops[0].end, json.dumps(sides.tgt_lang) if tops[0].style else sides.tgt_lang))
    context.notify(f"{len(strings):,} strings")
    out, done = [], 0
    for begin, end, new in edits:
        out += [text[done:begin], new]
        done = end
    return "".join([*out, text[done:]])


YAML = TextFormat(write=translate_yaml)


def _scalars(text: str, name: str) -> Iterator[tuple[_Scalar, int, bool]]:
    """The strings without a tag, with the number of collections around each, and whether it is a key."""
    opened: list[list[bool]] = []  # for each open collection, whether it is a mapping, and whether a key comes next
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionEndEvent):
            opened.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        is_key = bool(opened) and opened[-1][0] and opened[-1][1]
        if opened and opened[-1][0]:
            opened[-1][1] = not is_key
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append([isinstance(event, yaml.MappingStartEvent)] * 2)
            if len(opened) > MAX_DEPTH:
                raise DataError(f"{name}: its collections are nested more than {MAX_DEPTH} deep.")
        elif isinstance(event, yaml.ScalarEvent) and event.tag is None and _is_text(event):
            anchor = _ANCHOR.match(text, event.start_mark.index) if event.anchor else None
            begin = anchor.end() if anchor else event.start_mark.index
            value = event.value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
            scalar = _Scalar(begin, event.end_mark.index, value, event.style or "")
            yield scalar, len(opened), is_key


def _is_text(event: yaml.ScalarEvent) -> bool:
    is_plain = not event.style
    return not is_plain or _RESOLVER.resolve(yaml.ScalarNode, event.value, (True, False)) == _TEXT_TAG


def _written(scalar: _Scalar, output: str, text: str) -> str:
    """A translation in the style of its source."""
    if scalar.style in ("|", ">"):
        return _block(text[scalar.begin : scalar.end], scalar, _NOT_RAW.sub(" ", output))  # a block has no escapes
    if scalar.style == "'" and "\n" not in output and not _NOT_RAW.search(output):
        return "'" + output.replace("'", "''") + "'"
    if not scalar.style and _stays_plain(output):
        return output
    return _NOT_RAW.sub(lambda char: f"\\u{ord(char[0]):04x}", json.dumps(output, ensure_ascii=False))


def _stays_plain(text: str) -> bool:
    """Whether a text may be written without quotes, in any collection."""
    if text != text.strip() or re.search(r"[\n,\[\]{}#]|: |:$", text):
        return False
    try:
        events = [*yaml.parse(f"a: {text}", Loader=yaml.SafeLoader)]
    except yaml.YAMLError:
        return False
    scalars = [event for event in events if isinstance(event, yaml.ScalarEvent)]
    return len(scalars) == 2 and scalars[1].value == text and not scalars[1].style and _is_text(scalars[1])


def _block(written: str, scalar: _Scalar, output: str) -> str:
    """A block of lines, with the head and the indentation of its source."""
    head, _, body = written.partition("\n")
    lines = body.split("\n")
    first, first_read = (next(filter(str.strip, each), "") for each in (lines, scalar.value.split("\n")))
    indent = first[: _num_spaces(first) - _num_spaces(first_read)]
    end = "\r" if head.endswith("\r") else ""
    after = body[len(body.rstrip(" \r\n")) :] if body.strip() else ""
    if scalar.style == ">":
        output = _FOLDED.sub(r"\1\2\n", output)
    new = [indent + line if line else "" for line in output.rstrip("\n").split("\n")]
    return f"{head}\n" + f"{end}\n".join(new) + after


def _num_spaces(line: str) -> int:
    """Spaces at the beginning of a line."""
    return len(line) - len(line.lstrip(" "))
