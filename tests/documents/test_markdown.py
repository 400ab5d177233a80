"""Markdown: code, links and front matter stay, and marks move with their words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given as each
from hypothesis import strategies as st
from loud import given, translated

DOCS = sorted(
    (Path(__file__).resolve().parent.parent.parent / "docs").glob("*.md"), key=lambda path: path.stat().st_size
)
PAGE = """---
title: left alone
---
A title
=======

A *little* dog, **bold _both_ here** with `code x` in
two lines of [a link](http://x.y/z_(a) "t") and <b>html</b>.
A third line\\
and a hard break. Also
this 2 \\* 3 &amp; more_or_less.

> a quote
> of two lines
> > nested

* [x] an item
  continued
  1. another

```py
print("left alone")
```

    left = alone

| a head | b |
|---|:-:|
| cell \\| x | two |

![alt text](img_a.png) and [name] and [a text][name] and [^1].

[name]: http://example.com "left alone"
[^1]: A note.

<div>left alone</div>

See {{ var }} {% liquid %} {#id} <https://a.b/c> <!-- left alone --> end
"""


def test_the_text_of_a_page_is_translated_and_nothing_else() -> None:
    expected = PAGE
    for text in (
        "A title", "A *little* dog", "**bold _both_ here** with", "in\ntwo lines of [a link]", "and <b>html</b>",
        "A third line", "and a hard break. Also\nthis", "more_or_less", "a quote", "of two lines", "nested", "an item",
        "  continued", "another", "a head |", "| b |", "cell", "x | two", "alt text", " and [name] and [a text]",
        "and [^", "A note", "See {", " end",
    ):  # fmt: skip
        assert text in expected, text
        kept = {"<B>HTML</B>": "<b>HTML</b>", "[NAME]": "[name]"}
        loud = text.upper()
        for before, after in kept.items():
            loud = loud.replace(before, after)
        expected = expected.replace(text, loud, 1)
    assert translated("a.md", PAGE).decode() == expected
    assert translated("a.md", PAGE.replace("\n", "\r\n")).decode() == expected.replace("\n", "\r\n")


@pytest.mark.parametrize("path", DOCS[:-1], ids=lambda path: path.name)
def test_a_page_that_is_translated_to_itself_is_the_same_bytes(path: Path) -> None:
    data = path.read_bytes()
    assert translated("a.md", data, str) == data


def test_a_line_break_goes_with_its_word_and_begins_no_block() -> None:
    words = {"one two three four": "four three two one"}
    assert translated("a.md", "> one two\n> three four\n", lambda text: words[text]).decode().count("\n> ") == 1
    assert translated("a.md", "a one\nb 2. c\n", lambda text: text.replace("b 2.", "2. b")).decode() == "a one 2. b c\n"


def test_marks_that_a_model_makes_up_are_text() -> None:
    assert translated("a.md", "a dog\n", lambda text: "*a* [d]og <b> x_y").decode() == "\\*a\\* \\[d]og \\<b> x\\_y\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see [`x`](u), [`a` b `c`][], `d`  e\n\n[`a` b `c`]: u\n", ["see , , e"]),
        ("**a** and *b **c** d* __e__ ~~f~~\n", ["a and b c d e f"]),
        ("2 * 3 * 4, **open, snake_case_name, *[\n", ["2 * 3 * 4, open, snake_case_name, "]),
        ("``a ` b`` c ` d\n", [" c ` d"]),
    ],
)
def test_the_model_gets_words(text: str, expected: list[str]) -> None:
    assert [" ".join(line.split()) for line in given("a.md", text)] == [" ".join(line.split()) for line in expected]


@each(st.text("*_`[]()<>!#-|\\&; \nab1.~:", max_size=60))
def test_any_markdown_can_be_read_and_keeps_its_letters(text: str) -> None:
    letters = [char for char in translated("a.md", text, str).decode() if char in "ab1"]
    assert letters == [char for char in text if char in "ab1"]
