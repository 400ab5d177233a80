"""HTML as spans: markup stays unchanged, and only text is given to the model."""

from __future__ import annotations

import gc
import sys

import pytest
from growth import require_linear_time
from hypothesis import given
from hypothesis import strategies as st
from to_itself import to_itself

from heed.documents.html_language import SourceLanguage
from heed.documents.html_spans import parse, spoken_text
from heed.documents.html_tokens import html_tokens
from heed.documents.spans import Span, write_span
from heed.text.sentences import Piece, split_paragraph


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
        "{% if a < b and b > c %}<p>One {{ user.name }} two {{ x|f('>') }}.</p>{% endif %}",
        "{# <p>Not read</p> #}\n{%- for x in y -%}\n\n  {{ x }}\n\n{% endfor %}\n One\n{{{ raw }}}\n",
        "<p {% if a > b %}class='x'{% endif %} title={{ t }}>One {% if x %}two{% else %}three{% endif %} four.</p>",
        '<a href="{{ url("a>b") }}" {{ attrs }}>One</a> <% if x > 1 %> two <%= y %> <?= $a->b ?> three.',
        "<?php if ($a > 1): ?><b>One</b><?php endif; ?> {{ open and {% closed",
        "<!--[if IE]><p>x</p><![endif]--><![if !IE]>One<![endif]>",
        "<p>One <ruby>two<rp>(</rp><rt>three</rt><rp>)</rp></ruby> four <ruby>five<rt>six</ruby> seven.</p>",
    ],
)
def test_a_text_that_is_translated_to_itself_is_unchanged(text: str) -> None:
    assert unchanged(text) == text


@pytest.mark.parametrize(
    "ruby",
    [
        "<ruby>漢字<rp>(</rp><rt>かんじ</rt><rp>)</rp></ruby>",
        "<ruby>漢字<rt>かんじ</ruby>",
        "<ruby>漢<rp>(<rt>かん<rp>)</rp>字<rt>じ</ruby>",
        "<ruby><rb>漢<rt>かん<rb>字<rt>じ</ruby>",
    ],
)
def test_readings_are_not_given_to_the_model(ruby: str) -> None:
    assert sentences(f"<p>私は{ruby}を読む</p>") == ["私は漢字を読む"]


def test_only_text_is_given_to_the_model() -> None:
    text = (
        "<h1>A title</h1><p>One <b>two</b>\n   three. Four.</p><script>No</script><td>Cell</td>"
        "<p translate='no'>No</p><p>Five &amp; six&nbsp;&#55; <code>no</code> seven.</p>"
    )
    assert sentences(text) == ["A title", "One two three.", "Four.", "Cell", "Five & six\u00a07 seven."]


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("{% if user %}<p>Hi {{ user.name }}, hello.</p>{% endif %}", ["Hi , hello."]),
        ("One {% if x %}two{% endif %} three.\n{% if y %}\nFour\n{{ five }}\nsix", ["One two three.", "Four", "six"]),
        ("A {% if x %}one{% else %}two{% endif %} dog.<% } else { %>Six", ["A one", "two dog.", "Six"]),
        ("{# no #}One <%= no > 1 %>two<? three", ["One two<? three"]),
        ('<a {% if x > 1 %}b=\'c>\'{% endif %} d="{{ e("f>g") }}">One</a>', ["One"]),
        ("<a {{ x>y }}", ["<a "]),
        ('<a b="{{">One</a> }}', ["One }}"]),
        ("{{ <p>One</p> {{ two }}", ["{{", "One"]),
    ],
)
def test_tags_of_templates_are_not_given_to_the_model(text: str, given: list[str]) -> None:
    assert [" ".join(sentence.split()) for sentence in sentences(text)] == [" ".join(each.split()) for each in given]


@pytest.mark.parametrize(
    "text",
    [
        '<a href="x">{{ name }}</a> <b>text</b>',
        '<a href="x">{{ name }}</a> <b>.NET</b> here',
        '<a href="x">{{ name }}</a> {{ other }}.',
        '<img src="a"> <img src="b">, <i>and</i> more',
        '<a href="x">{{ name }}</a> <code>a</code><b>!</b>',
        "{{ name }} <b>{{ other }}</b>",
        "A word<sup>1</sup>{{ name }}",
        "A word<sup>1</sup><code>x</code> here",
    ],
)
def test_there_is_a_space_behind_what_stands_for_a_word_only_if_there_was_one(text: str) -> None:
    assert unchanged(f"<p>{text}</p>") == f"<p>{text}</p>"


def test_a_link_of_a_template_alone_does_not_touch_the_word_that_comes_before_it_in_the_translation() -> None:
    (span,) = [part for part in parse('One <a href="x">{{ name }}</a> two three') if isinstance(part, Span)]
    pieces = split_paragraph(span.plain, "en")
    two_first = [[(0, 1), (1, 0), (2, 0)]]
    assert write_span(span, pieces, ["Zweidrei eins"], two_first) == '<a href="x">{{ name }}</a> Zweidrei eins'
    last = [[(0, 2), (1, 2), (2, 2)]]
    assert write_span(span, pieces, ["zwei drei eins"], last) == 'zwei drei <a href="x">{{ name }}</a> eins'
    nothing = [[(0, 0)]]
    assert write_span(span, pieces, ["Eins"], nothing) == 'Eins <a href="x">{{ name }}</a>'


def test_the_symbol_of_a_footnote_is_not_read() -> None:
    text = '<p><a name="sym" href="#anc">1</a>They are <b>loud</b>.</p>'
    assert sentences(text) == ["They are loud."]
    assert unchanged(text) == text
    assert sentences("<p><a href='x'>1</a>st place, <b>1</b>They</p>") == ["1st place, 1They"]


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


@given(st.text("<>/ab&;!-\"'= \npi#[]{}%?", max_size=60))
def test_any_malformed_html_can_be_read(text: str) -> None:
    unchanged(text)


@given(st.text("<>/ab&;!-\"'= \npi#[]{}%?", max_size=60))
def test_the_tokens_of_any_text_are_the_text(text: str) -> None:
    assert "".join(token.text for token in html_tokens(text)) == text


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("<a title='>'>x</a>", ["a", "a"]),
        ('<a b="c>x', ["a"]),
        ("<script>a<b></b></script><i>", ["script", "script", "i"]),
        ("1 <2 <b <!-- <i>", ["b"]),
        ("<B CLASS=NoTranslate>", ["b"]),
        ("a <b", []),
    ],
)
def test_tags_end_at_the_first_angle_outside_of_quotes(text: str, tags: list[str]) -> None:
    assert [token.tag for token in html_tokens(text) if token.tag] == tags


def test_reading_stops_when_its_check_raises() -> None:
    left = iter(range(10))
    with pytest.raises(StopIteration):
        parse("<b>a</b>" * 1000, lambda: next(left) and None)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ('<p lang="en-GB">A dog</p><p lang=fr>Un chien</p><p>A cat</p>', ["A dog", "A cat"]),
        ('<blockquote lang="de"><p>Ein <b>Mann</b>.</p><p lang="en">No</p></blockquote><p>A cat', ["A cat"]),
        ('A man says <q xml:lang="fr">un <i>chien</i></q> here.', ["A man says here."]),
        ("<ul><li lang=fr>Un <b>a<li>A dog<li lang=de>Ein <ul><li>b</li></ul><li>A cat</ul>", ["A dog", "A cat"]),
        ("<div><p lang=fr>Un</b></div>A dog<p lang=de>Ein<h1>A cat</h1>", ["A dog", "A cat"]),
        ("<p>A dog <span lang=fr>un <i>a</p>A cat", ["A dog", "A cat"]),
        ("<div lang=fr>Un<p>a<p>b</p></span></div>A dog", ["A dog"]),
        ('<table><tr><td lang="ja">a<td>A dog</table>', ["A dog"]),
        ('<p lang="">A dog</p><p lang="und">A cat</p><p lang="{{ x }}">A cow</p>', ["A dog", "A cat", "A cow"]),
        ('<html lang="fr"><body lang="fr"><p>A dog<p lang="fr">Un', ["A dog"]),
        ('<img lang="fr" alt="Un">A dog<p lang="eng">A cat', ["A dog", "A cat"]),
    ],
)
def test_elements_in_other_languages_stay(text: str, given: list[str]) -> None:
    spans = [part.plain for part in parse(text, language=SourceLanguage("en")) if isinstance(part, Span)]
    assert [" ".join(plain.split()) for plain in spans if plain] == given
    assert to_itself(parse(text, language=SourceLanguage("en"))) == text


def test_without_a_known_model_the_language_is_that_of_the_page() -> None:
    inner = '<p lang="en">A dog</p><p lang="fr">Un chien</p>'
    assert sentences(f'<html lang="fr">{inner}') == ["Un chien"]
    assert sentences(inner) == ["A dog", "Un chien"]
    assert [part.plain for part in parse('<p lang="nb">a', language=SourceLanguage("no")) if isinstance(part, Span)]


NASTY = (
    "<b> </b> ", "<img> ", "<svg>a</svg> ", "<![x ", "&amp; ", "<b>", "<a ", "<a<a", "<!--", "<![CDATA[", "</", "<?",
    '<a b="', "<a b='\" c=\"'", "<code><b></i>", "<script></", "<", " ", "<![if ", "<!-- x -->", "<a =",
    "{{", "{{ }} ", "{%", "{% a", "{#", "<%", "<?php ", "<a {{", '<a b="{{"}}', "<a b='{%\" ", " {{a}}\n", "{{{",
    "<p translate=no><b>", "<li translate=no><ul><li>", "<p translate=no></div>",
)  # fmt: skip
"""Texts that quadratic readers of HTML choke on when they are repeated."""


def calls_of(text: str) -> int:
    """Number of calls of functions, of Python's and of C, while a text is read."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.collect()
    gc.disable()  # the ends of other tests' objects are calls, too
    sys.setprofile(count)
    try:
        parse(text)
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


@pytest.mark.parametrize("tail", ["", '<a x=">"', "</x>" * 300], ids=["open", "quoted", "closed"])
@pytest.mark.parametrize("repeated", NASTY)
def test_twice_as_much_html_takes_twice_as_many_steps(repeated: str, tail: str) -> None:
    assert calls_of(repeated * 600 + tail * 2) <= 2.1 * calls_of(repeated * 300 + tail) + 100


def test_twice_as_many_nested_elements_take_twice_as_many_steps() -> None:
    once, twice = (calls_of("<b>" * number + "a" + "</b>" * number) for number in (300, 600))
    assert twice <= 2.1 * once + 100


@pytest.mark.parametrize("repeated", NASTY)
@pytest.mark.parametrize("tail", ["", '<a x=">"'], ids=["open", "quoted"])
def test_long_markup_takes_linear_time(repeated: str, tail: str) -> None:
    """A step of C may be quadratic, too."""
    require_linear_time(parse, lambda times: repeated * times + tail)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a>One<br><b>a dog</b></a> runs", "<a>One<br>runs <b>dog a</b></a>"),
        ("<a>One<br><b>a dog</b> runs</a> <i>now</i> to us", "<a>One<br>us to <i>now</i> runs <b>dog a</b></a>"),
        ("<b>One<br></b> a <i>big dog</i> runs", "<b>One<br></b> runs <i>dog big</i> a"),
        ("<b>One<br>a <i>dog<br>to</b> us", "<b>One<br><i>dog a<br>us to</b>"),
    ],
)
def test_an_element_may_end_in_a_line_after_the_one_that_it_begins_in(text: str, expected: str) -> None:
    """Here the words of each line are exchanged."""

    def exchanged(span: Span) -> str:
        words = span.plain.split()
        links = [(number, len(words) - 1 - number) for number in range(len(words))]
        return write_span(span, [Piece(span.plain, True)], [" ".join(reversed(words))], [links])

    assert "".join(part if isinstance(part, str) else exchanged(part) for part in parse(text)) == expected
