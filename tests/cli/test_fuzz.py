"""Whatever is typed or piped in: no traceback, a known exit code, and a line for a line."""

from __future__ import annotations

from pathlib import Path

from command import call
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.core.config import keys
from heed.recipe import Recipe

CODES = {0, 2, 65, 66}
KEYS = [field.key for field in keys(Recipe)]

text = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=12)
value = st.one_of(
    text, st.integers().map(str), st.floats().map(str), st.sampled_from(["true", "[]", "{}", '"a"', "1e-4"])
)
word = st.one_of(
    text,
    st.builds("--{}={}".format, st.one_of(st.sampled_from(KEYS), text), value),
    st.builds("--{}".format, st.sampled_from([*KEYS, "task", "src", "max-time", "init", "resume", "precision"])),
    st.sampled_from(["translation", "language-model", "--task=translation", "--src=/", "--tgt=/", "--text=/"]),
)


@given(st.lists(word, max_size=6))
@settings(max_examples=100)
def test_any_words_for_train_end_with_a_message_and_a_known_code(words: list[str]) -> None:
    result = call("train", "--out", "/dev/null/run", *words)
    assert result.code in CODES
    assert "Traceback" not in result.err
    assert result.err or result.code == 0
    assert len(result.err.splitlines()) <= 25


lines = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=5)


@given(lines)
@settings(max_examples=15)
def test_any_lines_give_as_many_translations_and_scores(translator: Path, lines: list[str]) -> None:
    stdin = "".join(line + "\n" for line in lines)
    for words in (("--beam", "1"), ("--beam", "1", "--paragraphs"), ("--beam", "1", "--json")):
        result = call("translate", translator, *words, stdin=stdin)
        assert result.code == 0, result.err
        assert len(result.lines) == len(lines)


@given(st.binary(max_size=40))
@settings(max_examples=60)
def test_any_bytes_give_a_score_for_each_line_or_name_the_bad_one(bigram: Path, stdin: bytes) -> None:
    result = call("score", bigram, "--quiet", stdin=stdin)
    assert result.code in (0, 65)
    if result.code == 0:
        assert len(result.lines) == stdin.count(b"\n") + (stdin != b"" and not stdin.endswith(b"\n"))
    else:
        assert result.err.startswith("error: stdin, line ")


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20), max_size=5))
@settings(max_examples=40)
def test_any_text_comes_back_from_the_tokenizer(translator: Path, lines: list[str]) -> None:
    stdin = "".join(line + "\n" for line in lines)
    expected = "".join(line.removesuffix("\r") + "\n" for line in lines).removeprefix("\ufeff")
    encoded = call("tokenizer", "encode", translator, stdin=stdin).stdout
    assert call("tokenizer", "decode", translator, stdin=encoded).out == expected
