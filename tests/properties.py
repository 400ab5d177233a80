"""Properties that hold for every input: no traceback, a documented exit code, an output for each line, lossless text.

One list for the tests, which try some hundred cases, and for `benchmarks/fuzz.py`, which tries thousands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
from command import call
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from parsers import KEPT, PARSERS
from strategies import (
    COMPRESS,
    Pair,
    as_toml,
    damaged,
    lines_of_text,
    some_bytes,
    some_commands,
    some_edits,
    some_encodings,
    some_keys_and_values,
    some_pairs,
    tokenized_text,
    toml_text,
    train_words,
    written_as,
)
from tokenizer_kinds import KINDS

from heed.core.config import read_toml, to_toml
from heed.core.errors import DataError, HeedError, UsageError
from heed.recipe import Recipe, build_recipe
from heed.text.readers import CorpusFiles, read_lines, read_pairs
from heed.text.readers.tables import one_line
from heed.text.tokenizers import Tokenizer, TokenizerConfig, train_tokenizer
from heed.text.vocabulary import Vocabulary

CODES = {0, 2, 65, 66, 74}


@dataclass(frozen=True)
class Subjects:
    """The folder and the two runs that properties are checked with."""

    folder: Path
    translator: Path
    bigram: Path


@dataclass(frozen=True)
class Property:
    """A check, the strategies of its arguments, and its share of all cases in per cent."""

    check: Callable[..., None]
    given: Mapping[str, st.SearchStrategy[Any]]
    share: int

    def hold(self, subjects: Subjects, num_cases: int, seed: int | None = None) -> int:
        """Check `num_cases` cases (without a seed always the same ones); return how many were checked.

        Raises what the check raises, with the smallest case that makes it fail.
        """
        tried = 0

        @hypothesis.given(case=st.fixed_dictionaries(dict(self.given)))
        @settings(
            max_examples=num_cases, deadline=None, database=None, derandomize=seed is None,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        def attempt(case: dict[str, Any]) -> None:
            nonlocal tried
            tried += 1
            self.check(subjects, **case)

        (attempt if seed is None else hypothesis.seed(seed)(attempt))()
        return tried


# Text and files


def count_lines(data: bytes) -> int:
    """The number that `wc -l` prints, plus one for a last line without a line feed."""
    return data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))


def lines_are_those_between_line_feeds(subjects: Subjects, data: bytes, suffix: str) -> None:
    """For any bytes, compressed in any format."""
    path = subjects.folder / f"lines.txt{suffix}"
    path.write_bytes(COMPRESS[suffix](data))
    assert len(list(read_lines(path, "replace"))) == count_lines(data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        assert refusal(lambda: list(read_lines(path))).startswith(str(path)), error
        return
    ended = text.split("\n")
    expected = [line.removesuffix("\r") for line in ended[:-1]] + [line for line in ended[-1:] if line]
    if expected:
        expected[0] = expected[0].removeprefix("\ufeff")
    assert list(read_lines(path)) == expected


def refusal(work: Callable[[], object]) -> str:
    """The message of the DataError that `work` raises."""
    try:
        work()
    except DataError as error:
        return str(error)
    raise AssertionError("nothing was refused")


def read_or_refused(files: CorpusFiles, errors: Any = "strict") -> None:
    """Reading returns pairs of strings, or raises an error that names the file."""
    try:
        pairs = list(read_pairs(files, errors))
    except HeedError as error:
        assert str(files.pairs) in str(error)
    else:
        assert all(isinstance(side, str) for pair in pairs for side in pair)


def any_bytes_are_read_or_refused(subjects: Subjects, data: bytes, suffix: str, packing: str, errors: str) -> None:
    """In each format, compressed or not, with each handling of invalid characters."""
    packing = "" if suffix == ".parquet" else packing
    path = subjects.folder / f"bytes{suffix}{packing}"
    path.write_bytes(COMPRESS[packing](data))
    read_or_refused(CorpusFiles(pairs=path, src_lang="en", tgt_lang="de"), errors)


def what_is_written_is_read(subjects: Subjects, suffix: str, pairs: list[Pair], encoding: str) -> None:
    """Except that line breaks become spaces, CSV skips empty rows, and TMX drops white space around a segment."""
    path = subjects.folder / f"written{suffix}"
    path.write_bytes(written_as(suffix, pairs, encoding))
    expected = pairs
    if suffix == ".csv":
        expected = [(one_line(src), one_line(tgt)) for src, tgt in pairs if src or tgt]
    elif suffix == ".tmx":
        expected = [("x", "y"), *((one_line(src).strip(), one_line(tgt).strip()) for src, tgt in pairs)]
    assert list(read_pairs(CorpusFiles(pairs=path, src_lang="en", tgt_lang="de"))) == expected


def damaged_files_are_read_or_refused(
    subjects: Subjects, suffix: str, packing: str, pairs: list[Pair], edits: list[tuple[float, int, bytes]], late: bool
) -> None:
    """For damage to the file, or to its content before compression."""
    content = written_as(suffix, [("one", "eins"), *pairs, ("two", "zwei")], "utf-8")
    path = subjects.folder / f"damaged{suffix}{packing}"
    path.write_bytes(damaged(COMPRESS[packing](content), edits) if late else COMPRESS[packing](damaged(content, edits)))
    read_or_refused(CorpusFiles(pairs=path, src_lang="en", tgt_lang="de"))


def damaged_nasty_inputs_are_read_or_refused(
    subjects: Subjects, path: Path, name: str, edits: list[tuple[float, int, bytes]]
) -> None:
    """For each reader of bytes from strangers, and any kept input, whomever it was made for."""
    PARSERS[name].accepts(subjects.folder / "parsers", damaged(path.read_bytes(), edits))


# Recipes


def recipe_or_refusal(path: Path) -> Recipe | None:
    """The recipe, or None if it is refused, with at most a screen of messages that name the file and a line."""
    try:
        return build_recipe(read_toml(path))
    except UsageError as error:
        messages = str(error).split("\n")
        assert 0 < len(messages) <= 21
        assert all(message.startswith((f"{path}:", "... and ")) for message in messages), messages
        numbers = [
            int(number) for message in messages for number in re.findall(rf"^{re.escape(str(path))}:(\d+):", message)
        ]
        assert all(1 <= number <= path.read_bytes().count(b"\n") + 1 for number in numbers)
        return None


def any_text_is_a_recipe_or_refused(subjects: Subjects, text: str) -> None:
    """For text that resembles TOML."""
    path = subjects.folder / "text.toml"
    path.write_bytes(text.encode())
    recipe_or_refusal(path)


def any_values_make_a_recipe_or_are_refused(subjects: Subjects, values: dict[str, Any], task: str) -> None:
    """For values of any type; a valid recipe is equal after being written and read."""
    path = subjects.folder / "values.toml"
    lines = [f"{'.'.join(map(as_toml, key.split('.')))} = {as_toml(value)}\n" for key, value in values.items()]
    path.write_text(f'task = "{task}"\n' + "".join(lines), encoding="utf-8")
    if recipe := recipe_or_refusal(path):
        path.write_text(to_toml(recipe), encoding="utf-8", newline="\n")
        assert build_recipe(read_toml(path)) == recipe


# Tokenizers

TRAINING_TEXT = ["the dog sees a cat .", "Häuser, 12 Straßen; 日本語 😀", "</s> is no end", "the the dog dog"] * 5


@cache
def tokenizer_of(kind: str) -> Tokenizer:
    """A tokenizer of this kind, trained on a few lines."""
    return train_tokenizer(TokenizerConfig(kind=kind, vocab_size=300, shortlist=2), TRAINING_TEXT)


def text_comes_back_and_never_becomes_control(
    subjects: Subjects, kind: str, lines: list[str], p: float, key: tuple[int, int, int]
) -> None:
    """All kinds produce no control ids; lossless ones restore the text, also with dropout."""
    tokenizer = tokenizer_of(kind)
    encoded = tokenizer.encode(lines)
    control = {Vocabulary.pad_id, Vocabulary.bos_id, Vocabulary.eos_id}
    assert not any(control & {*ids} for ids in encoded)
    decoded = tokenizer.decode(encoded)
    assert len(decoded) == len(lines)
    if tokenizer.lossless:
        assert decoded == lines
        assert tokenizer.decode([tokenizer.encode_with_dropout(ids, p, key) for ids in encoded]) == lines


# The command line


def check_ending(words: list[str], in_folder: Path, stdin: bytes = b"") -> None:
    """The command ends with a documented exit code, and with a message if the code is not 0."""
    with chdir(in_folder):
        result = call(*words, stdin=stdin)
    assert result.code in CODES, result.err
    assert "Traceback" not in result.err
    assert "Internal error" not in result.err
    assert result.code == 0 or result.err or result.out, words
    assert len(result.err.splitlines()) <= 60


def any_words_for_train_end_well(subjects: Subjects, words: list[str]) -> None:
    """Nothing is trained, because the run folder cannot be created."""
    check_ending(["train", "--out", "/dev/null/run", *words], subjects.folder)


def any_flags_end_well(
    subjects: Subjects, command: tuple[tuple[str, ...], list[str]], with_run: str, stdin: bytes
) -> None:
    """For each verb that does not train, with either run."""
    verb, words = command
    operand = "test.csv" if verb[0] == "data" else str(getattr(subjects, with_run))
    check_ending([*verb, operand, *words], subjects.folder, stdin)


def as_many_translations_as_lines(subjects: Subjects, lines: list[str], flags: list[str]) -> None:
    """For any lines, and in each output format except n-best lists."""
    result = call("translate", subjects.translator, "--beam", "1", *flags, stdin="".join(line + "\n" for line in lines))
    assert result.code == 0, result.err
    assert len(result.lines) == len(lines)


def as_many_translations_as_lines_of_bytes(subjects: Subjects, stdin: bytes) -> None:
    """With `--errors replace`, for any bytes."""
    result = call("translate", subjects.translator, "--beam", "1", "--errors", "replace", stdin=stdin)
    assert result.code == 0, result.err
    assert len(result.lines) == count_lines(stdin)


def a_score_for_each_line_or_the_bad_one_is_named(subjects: Subjects, stdin: bytes) -> None:
    """With the default, `--errors strict`."""
    result = call("score", subjects.bigram, "--quiet", stdin=stdin)
    assert result.code in (0, 65)
    if result.code == 0:
        assert len(result.lines) == count_lines(stdin)
    else:
        assert result.err.startswith("error: standard input")


def text_comes_back_from_the_tokenizer_command(subjects: Subjects, lines: list[str]) -> None:
    """`heed tokenizer encode | heed tokenizer decode`."""
    stdin = "".join(line + "\n" for line in lines)
    expected = "".join(line.removesuffix("\r") + "\n" for line in lines).removeprefix("\ufeff")
    encoded = call("tokenizer", "encode", subjects.translator, stdin=stdin).stdout
    assert call("tokenizer", "decode", subjects.translator, stdin=encoded).out == expected


RECORDS = st.sampled_from([".csv", ".jsonl", ".tmx"])
PACKINGS = st.sampled_from(list(COMPRESS))

PROPERTIES = {
    "lines are those between line feeds": Property(
        lines_are_those_between_line_feeds, {"data": some_bytes, "suffix": PACKINGS}, 10
    ),
    "any bytes are read as records or refused": Property(
        any_bytes_are_read_or_refused,
        {"data": some_bytes, "suffix": st.sampled_from([".tsv", ".csv", ".jsonl", ".tmx", ".parquet"]),
         "packing": PACKINGS, "errors": st.sampled_from(["strict", "replace"])},
        10,
    ),
    "records that are written are read": Property(
        what_is_written_is_read, {"suffix": RECORDS, "pairs": some_pairs, "encoding": some_encodings}, 10
    ),
    "damaged records are read or refused": Property(
        damaged_files_are_read_or_refused,
        {"suffix": RECORDS, "packing": PACKINGS, "pairs": some_pairs, "edits": some_edits, "late": st.booleans()},
        10,
    ),
    "damaged nasty inputs are read or refused": Property(
        damaged_nasty_inputs_are_read_or_refused,
        {"path": st.sampled_from(KEPT), "name": st.sampled_from([*PARSERS]), "edits": some_edits},
        10,
    ),
    "any text is a recipe or refused": Property(
        any_text_is_a_recipe_or_refused, {"text": toml_text}, 12
    ),
    "any values make a recipe or are refused": Property(
        any_values_make_a_recipe_or_are_refused,
        {"values": some_keys_and_values(), "task": st.sampled_from(["translation", "translation", "language-model"])},
        10,
    ),
    "text comes back from its tokens, none is control": Property(
        text_comes_back_and_never_becomes_control,
        {"kind": st.sampled_from(KINDS), "lines": st.lists(tokenized_text, max_size=4), "p": st.floats(0, 1),
         "key": st.tuples(*[st.integers(0, 1 << 40)] * 3)},
        12,
    ),
    "any words for train end well": Property(any_words_for_train_end_well, {"words": train_words}, 5),
    "any flags of a verb end well": Property(
        any_flags_end_well,
        {"command": some_commands(), "with_run": st.sampled_from(["translator", "bigram"]), "stdin": some_bytes},
        4,
    ),
    "as many translations as lines": Property(
        as_many_translations_as_lines,
        {"lines": lines_of_text,
         "flags": st.sampled_from([[], ["--paragraphs"], ["--json"], ["--scores"], ["--alignment"]])},
        2,
    ),
    "as many translations as lines of bytes": Property(
        as_many_translations_as_lines_of_bytes, {"stdin": some_bytes}, 1
    ),
    "a score for each line, or the bad one is named": Property(
        a_score_for_each_line_or_the_bad_one_is_named, {"stdin": some_bytes}, 3
    ),
    "text comes back from heed tokenizer": Property(
        text_comes_back_from_the_tokenizer_command, {"lines": lines_of_text}, 1
    ),
}  # fmt: skip
