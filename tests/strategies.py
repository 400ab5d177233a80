"""Hypothesis strategies for malformed and unusual inputs, used by the properties of `properties.py`."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

import typer
import zstandard
from hypothesis import strategies as st

from heed.cli.main import app
from heed.core.config import keys
from heed.recipe import recipe_type
from heed.tasks import TASKS
from heed.text.vocabulary import SPECIAL_PIECES

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.ZstdCompressor().compress,
}  # fmt: skip
KEYS = sorted({field.key for task in TASKS for field in keys(recipe_type(task))})
Pair = tuple[str, str]


# Text and files

unicode_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
lines_of_text = st.lists(
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=5
)
snippets = st.sampled_from(
    [b"\n", b"\r\n", b"\r", b",", b";", b"\t", b'"', b'""', b"a", "ä€😀".encode(), b"\xff", b"\xfe", b"\x00",
     b"\xef\xbb\xbf", b"\xc2\x85", b"\xe2\x80\xa8", b"{", b"}", b'{"src": "a", "tgt": "b"}\n', b"a\tb\n", b'"a","b"\n',
     b"source,target\n", b"<?xml version='1.0' encoding='utf-16'?>", b"<tmx>", b"</tmx>",
     b"<tu><tuv xml:lang='en'><seg>", b"</seg></tuv>",
     b"<tuv lang='de-DE'><seg>", b"</tu>", b"&amp;", b"&nbsp;", b"<!DOCTYPE tmx [<!ENTITY a 'b'>]>", b"<ph>", b"</ph>",
     b"PAR1", b"\x1f\x8b", b"7 ", b"9" * 5000]
)  # fmt: skip
some_bytes = st.binary(max_size=60) | st.lists(snippets, max_size=12).map(b"".join)
some_edits = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from([0, 1, 5, 1000]), st.binary(max_size=4) | snippets), max_size=3
)
xml_characters = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff") | st.just("\n")
xml_text = st.text(xml_characters, max_size=20)
some_pairs = st.lists(st.tuples(xml_text, xml_text), max_size=4)
some_encodings = st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])


def damaged(content: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    """The content with some ranges replaced: (relative position, number of bytes, replacement)."""
    for place, length, replacement in edits:
        start = int(place * len(content))
        content = content[:start] + replacement + content[start + length :]
    return content


def written_as(suffix: str, pairs: list[Pair], encoding: str) -> bytes:
    """A file of these pairs, as a tool of that format writes it."""
    if suffix == ".jsonl":
        return "".join(json.dumps({"src": src, "tgt": tgt}) + "\n" for src, tgt in pairs).encode()
    if suffix == ".tmx":
        units = (
            f"<tu><tuv xml:lang='EN-us'>\n<seg>{escape(src)}</seg></tuv>"
            f"<tuv lang='de'><seg>{escape(tgt)}</seg></tuv></tu>\n"
            for src, tgt in [("x", "y"), *pairs]
        )
        text = f"<tmx version='1.4'><header/><body>{''.join(units)}</body></tmx>"
        return text.encode(encoding)
    table = io.StringIO()
    writer = csv.writer(table, delimiter=";", quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerows([("source", "target"), *pairs])
    return table.getvalue().encode(encoding)


# Recipes

toml_values: st.SearchStrategy[Any] = st.one_of(
    st.integers(-2, 10), st.integers(), st.floats(), st.booleans(), unicode_text, st.dates(),
    st.sampled_from(["translation", "language-model", "bpe", "transformer", "bigram", "rnn_attention", "float32", ""]),
    st.lists(st.integers() | unicode_text, max_size=3), st.dictionaries(unicode_text, st.integers(), max_size=2),
)  # fmt: skip
toml_snippets = st.sampled_from(
    ["[", "]", "[[", "]]", "=", " = ", ".", "\n", "#", '"', "'", '"""', "'''", "{", "}", ",", "1", "1e-4", "true",
     "nan", "\\", "data", "training", "lr", "é", "\r\n"]
)  # fmt: skip
toml_statements = st.sampled_from(
    ["task = 'language-model'", "seed = 3", "[training]", "lr = 1e-3", "[data]", "src = 'a'", "tgt = 7",
     "model.kind = 'bigram'", "[model]", "kind = 'transformer'", "d_model = 64", "[[training]]", "# a comment", "",
     "decoding = {beam_size = 2}", "[decoding]", "beam_size = 3", "nbest = 9",
     '"data" . src_column = "en"', "x = [1,\n 2]", "lrr = 2", "'[a]' = 1"]
)  # fmt: skip
toml_text = st.one_of(
    unicode_text,
    st.lists(toml_snippets, max_size=15).map("".join),
    st.lists(toml_statements | toml_snippets, max_size=8).map(
        lambda lines: "task = 'translation'\n" + "\n".join(lines)
    ),
)
DEFAULTS = {
    f"{table}.{name}": value
    for table, values in recipe_type("translation")(task="translation").model_dump(mode="json").items()
    if isinstance(values, dict)
    for name, value in values.items()
}
"""A valid value for each key of a recipe."""


@st.composite
def some_keys_and_values(draw: st.DrawFn) -> dict[str, Any]:
    """Keys of a recipe with valid values, and sometimes other keys or values of any type."""
    values = {key: DEFAULTS[key] for key in draw(st.lists(st.sampled_from(sorted(DEFAULTS)), max_size=5))}
    if any(key.startswith("model.") for key in values):
        values["model.kind"] = "transformer"
    wrong = st.dictionaries(st.sampled_from(KEYS) | unicode_text, toml_values, max_size=2)
    return {**values, **draw(st.just({}) | wrong)}


def as_toml(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(character):08X}" for character in value) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_toml(key)} = {as_toml(item)}" for key, item in value.items()) + "}"
    return str(value)


# Words of the command line

tokenized_text = st.lists(
    st.one_of(unicode_text, st.sampled_from([*SPECIAL_PIECES, " ", "\n", "dog", "Häu"])), max_size=6
).map("".join)
words_of_text = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=12)
some_values = st.one_of(
    words_of_text, st.integers(-1, 3).map(str), st.floats().map(str),
    st.sampled_from(["true", "[]", "{}", '"a"', "1e-4", "en", "cpu", "float32", "replace", "30m", "2"]),
)  # fmt: skip
train_words = st.lists(
    st.one_of(
        words_of_text,
        st.builds("--{}={}".format, st.one_of(st.sampled_from(KEYS), words_of_text), some_values),
        st.builds("--{}".format, st.sampled_from([*KEYS, "task", "src", "max-time", "init", "resume", "precision"])),
        st.sampled_from(["translation", "language-model", "--task=translation", "--src=/", "--tgt=/", "--text=/"]),
        st.sampled_from(["--task=translation", "--src=test.aa", "--tgt=test.bb", "--pairs=test.csv", "--text=test.aa"]),
    ),
    max_size=6,
)
VERBS = [
    ("translate",), ("score",), ("generate",), ("evaluate",), ("info",), ("data", "check"), ("tokenizer", "encode"),
    ("tokenizer", "decode"),
]  # fmt: skip


@cache
def flags_of(*verb: str) -> list[tuple[str, bool]]:
    """The options of a verb, and whether each takes a value."""
    command: Any = typer.main.get_command(app)
    for name in verb:
        command = command.get_command(typer.Context(command), name)
    options = [param for param in command.params if param.opts[0].startswith("--")]
    return [(name, not option.is_flag) for option in options for name in option.opts if name != "--debug"]


@st.composite
def some_commands(draw: st.DrawFn) -> tuple[tuple[str, ...], list[str]]:
    """A verb and some of its flags, with values that may be invalid."""
    verb = draw(st.sampled_from(VERBS))
    words: list[str] = []
    for name, takes_value in draw(st.lists(st.sampled_from(flags_of(*verb)), max_size=4)):
        words.append(name)
        files = ["test.aa", "test.bb", "test.csv", "nowhere", ".", ""]
        words += [draw(some_values | st.sampled_from(files))] if takes_value else []
    return verb, words
