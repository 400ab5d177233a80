"""YAML of strings: every style is kept, and what is not text stays."""

from __future__ import annotations

import pytest
import yaml
from loud import given, translated

from heed.core.errors import DataError

TEXT = """# a comment
en:
  plain: Hello %{name}, you   # another
  single: 'It''s here'
  double: "A \\"word\\"\\n\\u00e4"
  folded: >-
    one line
    and another

    second paragraph
  literal: |
    First line
      second line

  items: [Yes please, 'no way', 3.5, 2026-11-26, true, yes, ~, btn_ok, {key: A value}]
  anchor: &one Some text
  alias: *one
  tagged: !ruby/object:A Left alone
  wrapped: a text
    of two lines
  "quoted key": No
"""


def test_strings_are_translated_in_their_style() -> None:
    expected = TEXT
    for before, after in (
        ("en:\n", "de:\n"), ("Hello %{name}, you ", "'@'"), ("It''s here", "IT''S HERE"), ("A \\", "A \\"),
        ("    one line\n    and another\n\n    second paragraph", "    ONE LINE AND ANOTHER\n\n    SECOND PARAGRAPH"),
        ("    First line\n      second line", "    FIRST LINE\n      SECOND LINE"), ("Yes please", "YES PLEASE"),
        ("no way", "NO WAY"), ("A value", "A VALUE"), ("Some text", "SOME TEXT"),
        ("a text\n    of two lines", "A TEXT OF TWO LINES"),
        ('"A \\"word\\"\\n\\u00e4"', '"A \\"WORD\\"\\nÄ"'),
    ):  # fmt: skip
        assert before in expected
        expected = expected.replace(before, after.replace("'@'", '"HELLO %{name}, YOU" '))
    done = translated("a.yaml", TEXT).decode()
    assert done == expected
    assert translated("a.yml", "en-US:\n  a: b\n").decode() == "de:\n  a: B\n"
    assert translated("a.yml", TEXT.replace("en:\n", "de:\n"), str).decode() == TEXT.replace("en:\n", "de:\n")
    without_tags = done.replace("!ruby/object:A ", "")
    assert yaml.safe_load(without_tags)["de"]["folded"] == "ONE LINE AND ANOTHER\nSECOND PARAGRAPH"
    assert yaml.safe_load(without_tags)["de"]["literal"] == "FIRST LINE\n  SECOND LINE\n"


@pytest.mark.parametrize("output", ["yes", "12", "a: b", "- a", "# a", "@a", " a", "[a", "null", "a #b", "*a", "a\nb"])
def test_a_translation_that_would_mean_something_else_gets_quotes(output: str) -> None:
    done = translated("a.yaml", "a: some text\nb: [some text]\n", lambda _: output).decode()
    assert yaml.safe_load(done) == {"a": output, "b": [output]}


def test_emoji_that_are_written_as_json_writes_them_are_text() -> None:
    text = r'a: "\ud83d\ude00 Hello"'
    assert given("a.yaml", text) == ["😀 Hello"]
    assert translated("a.yaml", text).decode() == 'a: "😀 HELLO"'
    assert translated("a.yaml", text, str).decode() == text


@pytest.mark.parametrize("quote", ['"', "'", ""])
@pytest.mark.parametrize("char", ["\x7f", "\x80", "\x85", "\x9f", "\u2028", "\u2029", "\ufeff", "\uffff"])
def test_characters_that_yaml_reads_as_something_else_are_escaped(char: str, quote: str) -> None:
    done = translated("a.yaml", f"a: {quote}some text{quote}\n", lambda _: f"a{char}b").decode()
    assert yaml.safe_load(done) == {"a": f"a{char}b"}


@pytest.mark.parametrize("style", ["|", ">"])
def test_a_block_which_has_no_escapes_gets_a_space_for_such_a_character(style: str) -> None:
    done = translated("a.yaml", f"a: {style}\n  some text\n", lambda _: "a\u2028b").decode()
    assert yaml.safe_load(done) == {"a": "a b\n"}


def test_codes_and_keys_are_not_given_to_the_model() -> None:
    assert given("a.yaml", "one two: a_b\nthree:\n- x.y.z\n- Some words\n- ? complex key\n  : a value\n") == [
        "Some words", "a value",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "a.yaml:1: not YAML"),
        ("a: b: c", "a.yaml:1: not YAML"),
        ("[" * 500, "nested more than 100 deep"),
        ("a: \x01", "not YAML"),
        ("%YAML 3.0\n---\na", "not YAML"),
    ],
)
def test_what_is_no_yaml_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        translated("a.yaml", text)


def test_aliases_are_not_followed() -> None:
    doubled = (f"k{n}: &k{n} [*k{n - 1}, *k{n - 1}]\n" for n in range(1, 30))
    bomb = "k0: &k0 [text one]\n" + "".join(doubled)
    assert translated("a.yaml", bomb).decode() == bomb.replace("text one", "TEXT ONE")


@pytest.mark.parametrize(
    "text",
    [
        "a: |2\n    indented\n  next\n",
        "a: >2\n    indented\n  next one\n",
        "a: >\n  one\n  two\n\n  three\n\n    code here\n    more\n  four\n",
        "a: >\n\n  one\n\n\n  two\n",
    ],
    ids=["an indicator", "a folded one with an indicator", "lines that are indented more", "breaks at the beginning"],
)
def test_a_block_keeps_its_line_breaks_and_the_spaces_before_its_lines(text: str) -> None:
    before, after = yaml.safe_load(text)["a"], yaml.safe_load(translated("a.yml", text))["a"]
    assert after == before.upper()
