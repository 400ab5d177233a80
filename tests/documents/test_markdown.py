"""Markdown: code, links and front matter stay, and marks move with their words."""

from __future__ import annotations

from pathlib import Path

import pytest
from growth import require_linear_time
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


@pytest.mark.parametrize(
    ("output", "written"),
    [
        ("- x", "\\- x"), ("# x - y", "\\# x - y"), ("12. x", "12\\. x"), ("3) x", "3\\) x"), ("> x", "\\> x"),
        (">x", "\\>x"), ("-x - y", "-x - y"), ("1.5 x", "1.5 x"),
    ],
)  # fmt: skip
def test_a_paragraph_stays_one_whatever_it_begins_with(output: str, written: str) -> None:
    text = "A dog\n\n> A dog\n\n| A dog |\n|---|\n"
    expected = f"{written}\n\n> {written}\n\n| {output} |\n|---|\n"
    assert translated("a.md", text, lambda text: output).decode() == expected


@pytest.mark.parametrize("mark", ["\\\n", "  \n", "  \n> "])
def test_a_line_after_a_hard_break_begins_no_block(mark: str) -> None:
    text = f"> A dog{mark}– a cat{mark}-- a bird\n"
    done = translated("a.md", text, lambda text: text.replace("–", "-").replace("A dog", "1. A dog")).decode()
    assert done == f"> 1\\. A dog{mark}\\- a cat{mark}-- a bird\n"


def test_tags_of_line_breaks_separate_texts() -> None:
    text = "One line<br>**two\nlines<br/>three** lines\n\n| a<br />b | <ul><li>c</li><li>d</li></ul> |\n|---|---|\n"
    assert given("a.md", text) == ["One line", "two lines", "three lines", "a", "b", "c", "d"]
    done = translated("a.md", text).decode()
    assert done.lower() == text.lower() and done.startswith("ONE LINE<br>**TWO\nLINES<br/>THREE** LINES\n\n| A<br />B")


def test_marks_that_a_model_makes_up_are_text() -> None:
    assert translated("a.md", "a dog\n", lambda text: "*a* [d]og <b> x_y").decode() == "\\*a\\* \\[d]og \\<b> x\\_y\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see [`x`](u), [`a` b `c`][], `d`  e\n\n[`a` b `c`]: u\n", ["see , , e"]),
        ("**a** and *b **c** d* __e__ ~~f~~\n", ["a and b c d e f"]),
        ("2 * 3 * 4, **open, snake_case_name, *[\n", ["2 * 3 * 4, open, snake_case_name, "]),
        ("कहानी_हिन्दी_सूची\n", ["कहानी_हिन्दी_सूची"]),
        ("``a ` b`` c ` d\n", [" c ` d"]),
        ("A http://x.org/a_(b)/$c$_d, **http://x.org/a_b** or _http://x.org/a_\n",
         ["A http://x.org/a_(b)/$c$_d, http://x.org/a_b or http://x.org/a"]),
    ],
)  # fmt: skip
def test_the_model_gets_words(text: str, expected: list[str]) -> None:
    assert [" ".join(line.split()) for line in given("a.md", text)] == [" ".join(line.split()) for line in expected]


DIALECTS = """Left: $a^2 + b_c$ and \\(x_1\\), $$y$$ and \\[z=1\\], "costs $5 and $10" (US$ 3).

Escaped: \\(see here\\) \\[so there\\].
$$
left

- alone
$$
a word\\[
  left = alone
\\]
\\begin{align*}
left &= alone
\\end{align*}
> a quote
> $$ left $$ {#eq:left}
> a quote

:::note
a word
:::

::: {.left title="alone"}
:::: tip A *title*
a word
::::
:::left[alone]
:::danger[A title]{.x}
a word
:::
/// left
!!! warning "A title"
    a word
    two

    * an item

        a word

    ??? note
        a word

            left = alone
a word
!!! wow such dogs
=== "A tab"

    a word

A term
:   a text
    of lines

    a text
: a text
another
- item

![alt](x.png){width=50%} [link](u){.btn} **bold**{#id} `x`{.py} [span]{.class}.{.lead}
{: .left }

# A title {#left .alone}

==marked *text*== :left: :+1: 12:30:45 a==b if x == y {{< left "alone" >}} {% left %} {# left #}

> [!NOTE]
> a word

import Left from './alone'
export const left = "alone"

import dogs from the shelter.
"""
STAY = (
    "$a^2 + b_c$", "\\(x_1\\)", "$$y$$", "\\[z=1\\]", "left\n\n- alone", "left = alone", "left &= alone",
    "\\begin{align*}", "\\end{align*}", "$$ left $$ {#eq:left}", ":::note", '::: {.left title="alone"}', ":::: tip",
    ":::left[alone]", ":::danger", "{.x}", "/// left", "!!! warning", "??? note", "(x.png){width=50%}", "(u){.btn}",
    "{#id}", "`x`{.py}", "{.class}", "{.lead}", "{: .left }", "{#left .alone}", ":left:", '{{< left "alone" >}}',
    "{% left %}", "{# left #}", "[!NOTE]", "import Left from './alone'\nexport const left = \"alone\"",
)  # fmt: skip


def test_what_dialects_of_markdown_add_stays() -> None:
    expected = DIALECTS.upper()
    for text in STAY:
        assert text.upper() in expected, text
        expected = expected.replace(text.upper(), text)
    assert translated("a.md", DIALECTS).decode() == expected
    assert translated("a.md", DIALECTS.replace("\n", "\r\n")).decode() == expected.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is $5, not $x_1$ or $ 6$.\n", ["It is $5, not or $ 6$."]),
        ("A $\\$5$ b, \\$6$ c, US$-$ d\n", ["A b, $6$ c, US d"]),
        ("a\n:::note\nb\n:::\nc\n", ["a", "b", "c"]),
        ('> a\n> !!! note "b"\n>     c\n>     d\n> e\n', ["a", "b", "c d", "e"]),
        ("* a\n  $$\n  x\n  $$\n  b\n\n  !!! note\n      c\n", ["a", "b", "c"]),
        ("a\n: b\n: c\nd\n", ["a", "b", "c d"]),
        ("$$\na\n\n$$ b\n", ["$$ a", "$$ b"]),
        ("see :ref:`x` at 10:30:00 or a:b:c :d:\n", ["see at 10:30:00 or a:b:c "]),
        ("![a](b){.x .y} and {x} c\n", ["a and {x} c"]),
    ],
)
def test_the_model_gets_the_words_of_dialects(text: str, expected: list[str]) -> None:
    assert [" ".join(line.split()) for line in given("a.md", text)] == [" ".join(line.split()) for line in expected]


def test_a_title_cannot_end_before_its_quote() -> None:
    done = translated("a.md", '!!! note "a"\n:::tip[b]\n', lambda text: f'"{text}]"').decode()
    assert done == '!!! note "&quot;a]&quot;"\n:::tip["b\\]"]\n'


NASTY = ("$$\na\n", "\\[\na\n", "$a ", "\\(a ", "==a ", "{{a ", ":a ", "!!! a\n    ", ": a\n", "~a ", "~a~")
NASTY += ("http://_", "http://a_(")


@pytest.mark.parametrize("repeated", NASTY)
def test_long_markdown_takes_linear_time(repeated: str) -> None:
    require_linear_time(lambda text: translated("a.md", text, str), lambda times: repeated * times)


@each(st.text('*_`[]()<>!#-|\\&; \nab1.~:${}=?"', max_size=60))
def test_any_markdown_can_be_read_and_keeps_its_letters(text: str) -> None:
    letters = [char for char in translated("a.md", text, str).decode() if char in "ab1"]
    assert letters == [char for char in text if char in "ab1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See [[a page|this]] and ![[a.png]] now", "SEE [[a page|this]] AND ![[a.png]] NOW"),
        ("Drink H~2~O and C~6~H~12~O~6~ now", "DRINK H~2~O AND C~6~H~12~O~6~ NOW"),
        ("Ten m^2^ and a note^a^.", "TEN M^2^ AND A NOTE^a^."),
        ("From ~5 to ~10, ~~not this~~ and 2^3", "FROM ~5 TO ~10, ~~NOT THIS~~ AND 2^3"),
        ("~A word~, **~two~** _~more words~_ (~x~).", "~A WORD~, **~TWO~** _~MORE WORDS~_ (~X~)."),
        ("A *v*~max~ and (a)~b~ or a~b c~, ~5 or 7~8, ~/a/b ~", "A *V*~max~ AND (A)~b~ OR A~B C~, ~5 OR 7~8, ~/A/B ~"),
        ("==see http://x.org/a_b== or http://x.org/?a=b_c", "==SEE http://x.org/a_b== OR http://x.org/?a=b_c"),
        ("~gone~{.x} and ~~this~~ ~or that~", "~GONE~{.x} AND ~~THIS~~ ~OR THAT~"),
        (r"A a_b\_c and 2 \* 3", r"A A\_B\_C AND 2 \* 3"),
        ("It is $x_i$ or $5 and $6.", "IT IS $x_i$ OR $5 AND $6."),
    ],
)
def test_codes_of_other_dialects_stay(text: str, expected: str) -> None:
    assert translated("a.md", text).decode() == expected
    assert translated("a.md", text, str).decode() == text


@pytest.mark.parametrize(
    "table",
    [
        "  Loaf    Time\n  ------- ----------\n  Small   half an hour\n  *Big*   an hour\n",
        "------- -----\nSmall   short\n------- -----\n",
        "+------+------+\n| Loaf | Time |\n+======+======+\n| Big  | long |\n+------+------+\n",
    ],
)
def test_tables_of_pandoc_stay(table: str) -> None:
    text = f"{{}}\n\n{table}\n{{}}\n"
    assert translated("a.md", text.format("Before", "After")).decode() == text.format("BEFORE", "AFTER")


def test_rules_and_headings_of_dashes_are_no_tables() -> None:
    text = "A dog\n-----\n\nA cat\n\n- - -\n\n-- a dash -- and another\n\n--- ---\nA bird\n\n--- ---\n"
    assert translated("a.md", text).decode() == text.upper()
