"""Inline tags in text without spaces between words: placed in proportion to its characters."""

from __future__ import annotations

import re

import pytest
from growth import require_linear_time
from hypothesis import given
from hypothesis import strategies as st

from heed.documents.html_spans import parse
from heed.documents.inline_tags import InlineTag, Links, insert_tags, without_placeholders
from heed.documents.spans import Span
from heed.documents.unspaced_words import units_of_words
from heed.text.words import may_be_cut

ENGLISH = "The <b>cat</b> <i>eats</i> fish now."
JAPANESE = "猫は今魚を食べる。"


def inserted(text: str, target: str, links: Links) -> str:
    """The translation of a text of HTML with its tags."""
    [span] = [part for part in parse(text) if isinstance(part, Span)]
    return insert_tags(span.tags, span.plain, target, links)


def units(text: str) -> list[list[str]]:
    return [[text[first:last] for first, last in word] for word in units_of_words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two dogs, co-op", [["two"], ["dogs,"], ["co-op"]]),
        ("私は「本」を、NHKで 見た。", [["私", "は", "「本」", "を、", "NHK", "で"], ["見", "た。"]]),
        ("ちょっとカード 人々 {名前}さん", [["ちょっ", "と", "カー", "ド"], ["人々"], ["{名前}", "さ", "ん"]]),
        ("น้ำที่เก่า ខ្មែរ", [["น้ำ", "ที่", "เก่า"], ["ខ្មែ", "រ"]]),
        ("हिन्दी 한국어는", [["हिन्दी"], ["한국어는"]]),
    ],
)  # fmt: skip
def test_unspaced_words_are_cut_into_units(text: str, expected: list[list[str]]) -> None:
    assert units(text) == expected


@pytest.mark.parametrize("links", [[(number, 0) for number in range(5)], [(4, 0)], []])
def test_pairs_keep_their_part_of_an_unspaced_translation(links: Links) -> None:
    out = inserted(ENGLISH, JAPANESE, links)
    assert re.fullmatch("猫は?<b>は?今</b><i>魚を</i>食べる。", out)
    whole = inserted("<b>The cat eats fish now</b>.", JAPANESE, links)
    assert whole == "<b>猫は今魚を食べる</b>。"


@pytest.mark.parametrize("is_aligned", [True, False])
def test_pairs_of_an_unspaced_source_keep_a_word(is_aligned: bool) -> None:
    def translated(text: str, target: str) -> str:
        return inserted(text, target, [(0, number) for number in range(len(target.split()))] if is_aligned else [])

    out = translated('先生は<a href="x">本</a>を<i>買います</i>。', "The teacher wants to buy a book.")
    assert out in (
        'The <a href="x">teacher</a> <i>wants to buy a book</i>.',
        'The teacher <a href="x">wants</a> <i>to buy a</i> book.',
    )
    assert re.fullmatch(
        "(Today )?<b>(Today|I)</b>( I)? like water.",
        translated("今日、<b>私</b>は水が好きです。", "Today I like water."),
    )
    assert translated("漢字<sup>1</sup>の本を買う", "I buy a kanji book") == "I buy<sup>1</sup> a kanji book"


def test_words_with_spaces_around_an_unspaced_one_are_aligned() -> None:
    text, links = "The <b>word</b> <i>日本語</i> is <u>used</u>.", [(0, 0), (1, 1), (2, 2), (3, 4), (4, 3)]
    assert inserted(text, "Das Wort 日本語 verwendet wird.", links) == (
        "Das <b>Wort</b> <i>日本語</i> <u>verwendet</u> wird."
    )


@pytest.mark.parametrize(
    "text",
    [
        "私は<b>「本」</b>を<i>買い</i>ます。", "<b>NHK</b>で<i>見<u>た</u></i>、<b>人々</b>", "น้ำ<b>ที่</b>เก่า <i>นี่</i>",
        "漢字<sup>1</sup>の本<sup>2</sup>。", "<b>私</b>は dog <i>を</i>",
    ],
)  # fmt: skip
def test_an_unspaced_text_that_stays_keeps_its_tags(text: str) -> None:
    [span] = [part for part in parse(text) if isinstance(part, Span)]
    assert inserted(text, span.plain, [(number, number) for number in range(len(span.plain.split()))]) == text


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("私は{n}冊の本を買う。", "I buy books.", "I buy {n} books."),
        ("全{n}", "all", "all {n}"),
        ("ファイル{n}を削除", "删除文件了", "删除文{n}件了"),
        ("Delete {n} files now", "今ファイルを削除", "今ファ {n} イルを削除"),
    ],
)
def test_placeholders_stand_apart_from_words_of_other_scripts(text: str, target: str, expected: str) -> None:
    plain, tags = without_placeholders(text)
    assert insert_tags(tags, plain, target, [(0, number) for number in range(len(target.split()))]) == expected


PARTS = ["私は", "本", "を ", "「猫」", "、", "NHK", "man ", "。", "ที่", "น้ำ"]
TAGGED = st.recursive(
    st.sampled_from(PARTS),
    lambda inner: st.tuples(st.sampled_from("bia"), st.lists(inner, min_size=1, max_size=3)).map(
        lambda made: f"<{made[0]}>{''.join(made[1])}</{made[0]}>"
    ),
    max_leaves=8,
)
TARGETS = st.lists(st.sampled_from([*PARTS, "{n}", "ッ", "है "]), max_size=9).map("".join).map(str.strip)


@given(parts=st.lists(TAGGED, min_size=1, max_size=4), target=TARGETS, data=st.data())
def test_pairs_are_nested_and_keep_text_for_any_links(parts: list[str], target: str, data: st.DataObject) -> None:
    text = "".join(parts)
    [span] = [part for part in parse(text) if isinstance(part, Span)]
    words = st.integers(0, max(0, len(span.plain.split()) - 1)), st.integers(0, max(0, len(target.split()) - 1))
    links: Links = data.draw(st.lists(st.tuples(*words), max_size=4, unique=True))
    out = insert_tags(span.tags, span.plain, target, links)
    assert sorted(re.findall("<[^>]*>", out)) == sorted(re.findall("<[^>]*>", text))
    assert re.sub("<[^>]*>", "", out) == target
    open_tags: list[str] = []
    for tag in re.findall("</?[bia]>", out):
        assert open_tags.pop() == tag[2] if tag[1] == "/" else not open_tags.append(tag[1])
    for match in re.finditer("<[^>]*>", out):
        place = len(re.sub("<[^>]*>", "", out[: match.start()]))
        assert place == 0 or may_be_cut(target, place)
    is_cut = any(len(word) > 1 for plain in (span.plain, target) for word in units_of_words(plain))
    if is_cut and text.count("</") <= sum(map(len, units_of_words(target))):
        assert not re.search(r"<(\w)>(<[^>]*>)*</\1>", out)


@pytest.mark.parametrize("links", [[(0, 0)], []])
def test_many_tags_take_linear_time(links: Links) -> None:
    def tags(size: int) -> list[InlineTag]:
        pairs = [(InlineTag("<b>", n, "open", n), InlineTag("</b>", n + 1, "close", n)) for n in range(size)]
        return [tag for pair in pairs for tag in pair]

    def insert(tags: list[InlineTag]) -> None:
        insert_tags(tags, "本" * (len(tags) // 2), "猫" * (len(tags) // 2), links)

    require_linear_time(insert, tags)
