"""HTML as spans: markup stays unchanged, and only text is given to the model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from to_itself import to_itself

from heed.documents.html_spans import parse, spoken_text
from heed.documents.spans import Span
from heed.text.sentences import split_paragraph


def unchanged(text: str) -> str:
    """The text, each sentence translated to itself."""
    return to_itself(parse(text))


def sentences(text: str) -> list[str]:
    """The sentences given to the model."""
    found = [split_paragraph(part.plain, "en") for part in parse(text) if isinstance(part, Span)]
    return [piece.text for pieces in found for piece in pieces if piece.is_sentence]


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "a < b & c".replace("<", "&lt;").replace("&", "&amp;", 1).replace("& c", "&amp; c"),
        "<!DOCTYPE html>\n<html lang=en>\n  <head><title>A title.</title>\n<style>p > a { x: y }</style></head>",
        '<p>One <b>two</b> three. <i>Four five.</i> Six <a href="?a=1&amp;b=2">seven</a>!</p>',
        "<ul>\n <li>One\n <li>Two <br> three <br/> four\n</ul>",
        "<p>See <code>x = 1</code> now. <img src='a.png' alt=\"b\"> And <span translate=no>Do not</span> this.</p>",
        "<script>if (a < b && c) { '</p>' }</script><pre>\n  a  b </pre><textarea>Text.</textarea>",
        "<div class='notranslate'><p>Not <b>this</b>.</p><div>Nor this.</div></div><p>This.</p>",
        "<!-- a comment --> One <!-- two --> three.<?php x ?>",
        "<b>One <i>two</b> three</i>, <p>unclosed <b>here",
        "<b>One. Two.</b> Three <i>four. Five</i> six.",
        "</p></b>stray",
        "<p>Hi</p><style>p{}",
        "<p>a</p><![CDATA[x > y]]><p>b</p>",
        "<!--[if IE]><p>x</p><![endif]--><![if !IE]>One<![endif]>",
    ],
)
def test_a_text_that_is_translated_to_itself_is_unchanged(text: str) -> None:
    assert unchanged(text) == text


def test_only_text_is_given_to_the_model() -> None:
    text = (
        "<h1>A title</h1><p>One <b>two</b>\n   three. Four.</p><script>No</script><td>Cell</td>"
        "<p translate='no'>No</p><p>Five &amp; six&nbsp;&#55; <code>no</code> seven.</p>"
    )
    assert sentences(text) == ["A title", "One two three.", "Four.", "Cell", "Five & six\u00a07 seven."]


def test_entities_that_mean_markup_stay_text() -> None:
    assert unchanged("<p>1 &lt; 2 &amp;&amp; &lt;script&gt;</p>") == "<p>1 &lt; 2 &amp;&amp; &lt;script&gt;</p>"


def test_an_ampersand_that_does_not_start_an_entity_is_text() -> None:
    text = "<p>AT&T is big,\nR&D costs 5 & more.<br>Q&A: a&b=2 &copy 2026 &lt; 3 &#55 <code>a&b &amp; c&d;</code></p>"
    assert sentences(text) == ["AT&T is big, R&D costs 5 & more.", "Q&A: a&b=2 \u00a9 2026 < 3 7"]
    assert "<code>a&b &amp; c&d;</code>" in unchanged(text)


@pytest.mark.parametrize(
    ("text", "given", "written"),
    [
        ("Shop at H&M", ["Shop at H&M"], "Shop at H&amp;M"),
        ("Q&", ["Q&"], "Q&amp;"),
        ("<p>Press &# or <b>0</b></p>", ["Press &# or 0"], "<p>Press &amp;# or <b>0</b></p>"),
        ("<p>see <![image](x.png)</p>", ["see <![image](x.png)"], "<p>see &lt;![image](x.png)</p>"),
        ('<a href="?a&b">x</a> \ue000', ["x \ue000"], '<a href="?a&b">x</a> \ue000'),
    ],
)
def test_text_that_only_looks_like_markup_is_text(text: str, given: list[str], written: str) -> None:
    assert sentences(text) == given
    assert unchanged(text) == written


def test_the_spoken_text_is_without_markup() -> None:
    assert spoken_text("<style>p { color: red }</style><p>Hallo &amp; <b>du</b></p><td>x</td>") == "Hallo & du\nx"


@given(st.text("<>/ab&;!-\"'= \npi#[]", max_size=60))
def test_any_malformed_html_can_be_read(text: str) -> None:
    unchanged(text)


@pytest.mark.parametrize("repeated", ["<b> </b> ", "<img> ", "<svg>a</svg> ", "<![x ", "&amp; ", "<b>"])
def test_long_markup_takes_linear_time(repeated: str) -> None:
    """Quadratic time would exceed the time limit of tests."""
    parse(repeated * 10_000)
