"""Inline tags and placeholders: placed by alignment, and never lost."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from growth import require_linear_time
from hypothesis import example, given
from hypothesis import strategies as st

from heed.documents.codes import are_kept, has_words, placeholders
from heed.documents.html_spans import parse
from heed.documents.inline_tags import InlineTag, Links, insert_tags, without_placeholders
from heed.documents.spans import PartsBuilder, Span, escape

SOURCE = "A man plays the guitar"
TARGET = "Die Gitarre spielt ein Mann"  # the guitar plays a man
LINKS = [(3, 0), (4, 1), (2, 2), (0, 3), (1, 4)]


def pair(begin: str, end: str = "", tag: str = "b", number: int = 0, source: str = SOURCE) -> list[InlineTag]:
    """A pair of tags around the text from one word to another."""
    first = source.index(begin)
    last = source.index(end or begin) + len(end or begin)
    return [InlineTag(f"<{tag}>", first, "open", number), InlineTag(f"</{tag}>", last, "close", number)]


def in_order(*pairs: list[InlineTag]) -> list[InlineTag]:
    """Tags in the order of the source."""
    rank = {"close": 0, "single": 1, "open": 2}
    return sorted((tag for each in pairs for tag in each), key=lambda tag: (tag.place, rank[tag.kind]))


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        ("guitar", "", "Die <b>Gitarre</b> spielt ein Mann"),
        ("the", "guitar", "<b>Die Gitarre</b> spielt ein Mann"),
        ("A", "man", "Die Gitarre spielt <b>ein Mann</b>"),
        ("A", "guitar", "<b>Die Gitarre spielt ein Mann</b>"),
        ("man", "plays", "Die Gitarre <b>spielt</b> ein Mann"),  # two runs of one word each: the first
    ],
)
def test_a_pair_encloses_the_translation_of_its_words(begin: str, end: str, expected: str) -> None:
    assert insert_tags(pair(begin, end), SOURCE, TARGET, LINKS) == expected


def test_pairs_stay_inside_pairs() -> None:
    outer, inner, other = pair("the", "guitar", "a"), pair("guitar", tag="i", number=1), pair("A", tag="u", number=2)
    tags = [*other, outer[0], *inner, outer[1]]
    assert insert_tags(tags, SOURCE, TARGET, LINKS) == "<a>Die <i>Gitarre</i></a> spielt <u>ein</u> Mann"


def test_a_single_tag_stays_with_the_word_on_its_right() -> None:
    assert (
        insert_tags([InlineTag("<img>", SOURCE.index("the"))], SOURCE, TARGET, LINKS)
        == "<img>Die Gitarre spielt ein Mann"
    )
    alone = InlineTag("{x}", SOURCE.index("guitar"), glued_left=False, glued_right=False)
    assert insert_tags([alone], SOURCE, TARGET, LINKS) == "Die {x} Gitarre spielt ein Mann"
    assert insert_tags([InlineTag("{x}", len(SOURCE), glued_left=False)], SOURCE, TARGET, LINKS) == TARGET + " {x}"
    assert insert_tags([InlineTag("{x}", 0, glued_right=False)], SOURCE, TARGET, LINKS) == "{x} " + TARGET


def test_punctuation_outside_a_pair_stays_outside() -> None:
    source, target = "See the dog, man", "Sieh den Hund, Mann"
    links = [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert insert_tags(pair("dog", source=source), source, target, links) == "Sieh den <b>Hund</b>, Mann"
    assert insert_tags(pair("dog,", source=source), source, target, links) == "Sieh den <b>Hund,</b> Mann"


@pytest.mark.parametrize(
    ("word", "target"),
    [
        ("Hindi", "मैं <b>हिन्दी</b> बोलता हूँ।"), ("Hindi", "मैं बोलता हूँ <b>हिन्दी</b>।"), ("Thai", "<b>น้ำที่</b> นี่"),
        ("peace", "<b>سَلَامٌ</b>, عَلَيْكُم"), ("word", "kan <b>o\u0323\u0300ro\u0323\u0300</b>."),
        ("Malayalam", "<b>അവന\u0d4d\u200d</b> വന്നു"),
        ("love", "emoji <b>❤\ufe0f</b> hier"), ("family", "<b>👨\u200d👩\u200d👧</b> hier"),
    ],
)  # fmt: skip
def test_marks_and_joiners_stay_with_their_letter(word: str, target: str) -> None:
    plain = target.replace("<b>", "").replace("</b>", "")
    number = target[: target.index("<b>")].count(" ")
    links = [(0, number), (1, number - 1 if number else 1)]
    assert insert_tags(pair(word, source=word), f"{word} is", plain, links) == target


def test_a_word_of_the_source_may_end_with_a_mark() -> None:
    tags = pair("हिन्दी", source="हिन्दी है")
    assert insert_tags(tags, "हिन्दी है", "Hindi, is", [(0, 0), (1, 1)]) == "<b>Hindi</b>, is"


def test_no_tag_inside_a_word_is_placed_before_a_mark() -> None:
    assert insert_tags([InlineTag("<wbr>", 1)], "ea ist", "e\u0301a ist", [(0, 0), (1, 1)]) == "e\u0301<wbr>a ist"


def test_tags_keep_their_order_without_links() -> None:
    tags = in_order(pair("man"), [InlineTag("<br>", SOURCE.index("guitar"))])
    assert insert_tags(tags, SOURCE, TARGET, ()) == "<b>Die</b> Gitarre spielt ein <br>Mann"
    assert insert_tags(tags, SOURCE, "", LINKS) == "<b></b><br>"


def test_text_between_tags_is_escaped() -> None:
    assert insert_tags([InlineTag("<br>", 1)], "a b", "x<y & z", [(1, 1)], escape) == "x&lt;y <br>&amp; z"


TAGGED = st.recursive(
    st.sampled_from(["a ", "man", " plays ", "x, y", "<wbr/>", " {n} "]),
    lambda inner: st.tuples(st.sampled_from("bia"), st.lists(inner, max_size=3)).map(
        lambda made: f"<{made[0]}>{''.join(made[1])}</{made[0]}>"
    ),
    max_leaves=8,
)


@given(parts=st.lists(TAGGED, max_size=4), target=st.text("xy z.", max_size=20), data=st.data())
def test_all_tags_occur_once_and_nested_for_any_links(parts: list[str], target: str, data: st.DataObject) -> None:
    [span, *_] = [*[part for part in parse("".join(parts)) if isinstance(part, Span)], Span()]
    words = st.integers(0, max(0, len(span.plain.split()) - 1)), st.integers(0, max(0, len(target.split()) - 1))
    links: Links = data.draw(st.lists(st.tuples(*words), max_size=6, unique_by=lambda link: link[1]))
    out = insert_tags(span.tags, span.plain, target, links)
    written = "".join(tag.text for tag in span.tags)
    assert Counter(re.findall(r"<[^>]*>", out)) == Counter(re.findall(r"<[^>]*>", written))
    open_tags: list[str] = []
    for tag in re.findall(r"</?[bia]>", out):
        if tag.startswith("</"):
            assert open_tags.pop() == tag[2]
        else:
            open_tags.append(tag[1])
    assert not open_tags
    assert re.sub(r"<[^>]*>|\s", "", out) == re.sub(r"\s", "", target)


def test_a_tag_whose_partner_is_in_another_sentence_stays_at_the_edge() -> None:
    closing = InlineTag("</b>", 0, "close", 7)
    assert insert_tags([closing], SOURCE, TARGET, LINKS) == f"</b>{TARGET}"
    assert insert_tags([closing], SOURCE, TARGET, []) == f"</b>{TARGET}"


def test_spaces_and_punctuation_stay_on_their_side_of_a_tag() -> None:
    source, links = "(see here .) now", [(0, 0), (1, 1), (2, 2), (3, 3)]
    tags = [InlineTag("<a>", 1, "open", 0), InlineTag("</a>", 10, "close", 0)]
    assert insert_tags(tags, source, source.upper(), links) == "(<a>SEE HERE </a>.) NOW"


# Placeholders


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hello {name}, {{ you }}!", ["{name}", "{{ you }}"]),
        ("${HOME} has %d of %(total)s files, %1$s, %.2f, %@", ["${HOME}", "%d", "%(total)s", "%1$s", "%.2f", "%@"]),
        ("See https://example.org/a?b=c#d.", ["https://example.org/a?b=c#d"]),
        ("(http://x.org), a.b+c@example.co.uk.", ["http://x.org", "a.b+c@example.co.uk"]),
        ("100% sure, 50 %s off", ["%s"]),
        ("{\\an8}a dog {b\\} {\\bf x} {\\frac}", ["{\\an8}"]),
        ("{ not this one } and 5 % dogs", []),
        ("100%data", []),
        ("Press [X6X] or [X120X]. [XX] [6]", ["[X6X]", "[X120X]"]),
        ("a <b0>dog</b0><br1/> <b> 3 <4 x1>", ["<b0>", "</b0>", "<br1/>"]),
        ("%lu of %-5zd bytes, %{total}, {0, number, integer}", ["%lu", "%-5zd", "%{total}", "{0, number, integer}"]),
        ("%s%s, %dx%d, %dMB", ["%s", "%dx%d", "%dMB"]),
        ("%c %p %r %*d %'d %#x %d%%", ["%c", "%p", "%r", "%*d", "%'d", "%#x", "%d", "%%"]),
        ("%(name)r %<count>d %1 %L2 of %n", ["%(name)r", "%<count>d", "%1", "%L2", "%n"]),
        ("{price:,.2f} {items[0]} {0:>10}", ["{price:,.2f}", "{items[0]}", "{0:>10}"]),
        ("$name, $t(nested.key), @:linked.key :count", ["$name", "$t(nested.key)", "@:linked.key", ":count"]),
        ("Since %B %-d, %Y :tada:!", ["%B", "%-d", "%Y", ":tada:"]),
        ("at 10:30:15, 5 %-off, 100 %discount, $5 and $US, a: b :p", []),
        ("100 %ige, 50 %-ige, 7 %p.a., 15 %o, Ke$ha", []),
        (
            "See https://example.com/a_(b). And (https://example.com/c).",
            ["https://example.com/a_(b)", "https://example.com/c"],
        ),
        ("%s個の%dMB、合計%1$d件と100%だ", ["%s", "%dMB", "%1$d"]),
        ("ファイル%1を %L2で", ["%1", "%L2"]),
        ("파일 %s을 %d개", ["%s", "%d"]),
        ("ไฟล์%dรายการ %sने %sকে", ["%d", "%s"]),
        ("价格$price是:smile:和 :count个 @:linked.key的", ["$price", ":smile:", ":count", "@:linked.key"]),
        ("ל$name ו-%s, %sها", ["$name", "%s"]),
        ("100 %süß, 100 %sы, 100 %dά, %süß, %1é, é$name", []),
        ("https://example.comをご覧ください。", ["https://example.com"]),
        ("see https://ja.example.org/wiki/日本 for more", ["https://ja.example.org/wiki/日本"]),
        (
            "https://한국.example/a https://example.com/パス?x=1",
            ["https://한국.example/a", "https://example.com/パス?x=1"],
        ),
        ("https://example.com/をご覧，https://example.com，谢谢", ["https://example.com/", "https://example.com"]),
        (
            "参照：https://example.com/a?b=1、（https://example.org）",
            ["https://example.com/a?b=1", "https://example.org"],
        ),
        ("https://example.com에서 https://example.com/aที่นี่", ["https://example.com", "https://example.com/a"]),
        ("यहाँ https://example.com।", ["https://example.com"]),
        (
            "https://de.wikipedia.org/wiki/Köln, https://ar.wikipedia.org/wiki/مصر، و",
            ["https://de.wikipedia.org/wiki/Köln", "https://ar.wikipedia.org/wiki/مصر"],
        ),
        (
            "お問い合わせはinfo@example.comまで, 이메일은a.b@example.com으로, müller@exämple.de",
            ["info@example.com", "a.b@example.com", "müller@exämple.de"],
        ),
    ],
)
def test_placeholders_are_distinguished_from_text(text: str, found: list[str]) -> None:
    assert list(placeholders(text)) == found


@pytest.mark.parametrize("unit", ["a", "a.", "%s個", "https://", "https://(あ", "@a.", "日本", ":a_", "$a", "@:a."])
def test_placeholders_are_found_in_linear_time(unit: str) -> None:
    require_linear_time(placeholders, lambda times: unit * times)


@pytest.mark.parametrize(
    "text", ["SKU-99-X", "v1.2.3", "foo_bar", "img/icons/a.png", "/etc/hosts", "#ff0000", "YYYY-MM-DD", "HH:mm",
             "d. MMM yyyy", "%Y-%m-%d", "%B %d, %Y", "{n} / {total}", "12", "https://example.org/a b@example.org"]
)  # fmt: skip
def test_codes_have_no_words(text: str) -> None:
    assert not has_words(text)


@pytest.mark.parametrize(
    "text", ["dog", "and/or", "20th", "3pm", "Yes/No", "a day", "mmm", "A: d", "{n} dogs", "A_b c", "Top-10", "2-year",
             "z.B.", "red/green/blue", "U.S.", "3-year-old", "19th-century", "3D-Drucker", "100%ige", "9am-5pm",
             "St.Petersburg", "yes/no/maybe", "#winning", "我有3只狗。", "彼は2024年に生まれた。", "étudiant.e.s",
             "https://example.comをご覧ください。"]
)  # fmt: skip
def test_words_are_no_codes(text: str) -> None:
    assert has_words(text)


def test_a_placeholder_stays_before_the_sign_at_the_end_and_apart_from_words() -> None:
    def inserted(text: str, target: str, links: Links) -> str:
        plain, tags = without_placeholders(text)
        return insert_tags(tags, plain, target, links)

    assert inserted("A man on {date}.", "Ein Mann.", [(1, 1)]) == "Ein Mann {date}."
    assert inserted("Hello, {name}!", "Hallo, !", [(0, 0)]) == "Hallo, {name}!"
    assert inserted("{user}'s dog", "Der Hund", [(1, 1)]) == "{user} Der Hund"
    assert inserted("A man %s", "Ein Mann.", [(1, 1)]) == "Ein Mann %s."
    assert inserted("He calls %s !", "Er ruft ihn an.", [(1, 1)]) == "Er ruft ihn an %s."
    assert inserted("A man on {date}.", "एक आदमी।", [(1, 1)]) == "एक आदमी {date}।"
    assert inserted("Hello {name}!", "こんにちは！", [(0, 0)]) == "こんにちは {name}！"
    assert inserted("नमस्ते {name}।", "Hello.", [(0, 0)]) == "Hello {name}."
    assert inserted("A man %s", "एक आदमी।", [(1, 1)]) == "एक आदमी %s।"
    assert inserted("(story) {n}", "कहानी", [(0, 0)]) == inserted("(story){n}", "कहानी", [(0, 0)]) == "कहानी {n}"
    assert inserted("कहानी{n} है", "story is", [(0, 0)]) == "story{n} is"


def test_a_tag_that_shows_text_does_not_touch_a_word() -> None:
    def inserted(tag: str) -> str:
        builder = PartsBuilder()
        builder.add_text("Figure ")
        builder.single_tag(tag)
        builder.add_text(": two dogs")
        [span] = [part for part in builder.parts() if isinstance(part, Span)]
        return insert_tags(span.tags, span.plain, "Zwei Hunde", [(2, 1)])

    assert inserted("<f>1</f>") == "Zwei <f>1</f> Hunde"
    assert inserted("<br/>") == "Zwei <br/>Hunde"


def test_placeholders_that_are_told_apart_by_their_order_keep_it() -> None:
    def inserted(text: str) -> str:
        plain, tags = without_placeholders(text)
        return insert_tags(tags, plain, "in Berlin hat es Hunde", [(1, 4), (3, 1), (0, 2)])

    assert inserted("has %d dogs in %s Berlin") == "in %d Berlin hat es %s Hunde"
    assert inserted("has %2$d dogs in %1$s Berlin") == "in %1$s Berlin hat es %2$d Hunde"
    assert are_kept("%d %s", "x %d y %s") and not are_kept("%d %s", "%s %d")
    assert are_kept("%s has %d files", "%sは%d個のファイル")
    assert are_kept("%2$d %1$s %(a)s", "%1$s %(a)s %2$d") and are_kept("%1 %L2", "%L2 %1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two dogs<sup>1</sup> run.", "TWO DOGS<sup>1</sup> RUN."),
        ("Two dogs run<sup><a href=x>[1]</a></sup>.", "TWO DOGS RUN<sup><a href=x>[1]</a></sup>."),
        ("See <a href=x>(3)</a> for more", "SEE <a href=x>(3)</a> FOR MORE"),
        ("<a href=x>(1)</a> Two dogs.<sup>*</sup>", "<a href=x>(1)</a> TWO DOGS.<sup>*</sup>"),
        ("हिन्दी<sup>1</sup> है।<sup>2</sup>", "हिन्दी<sup>1</sup> है।<sup>2</sup>"),
        ("漢字<sup>1</sup>の本。<sup>2</sup>", "漢字<sup>1</sup>の本。<sup>2</sup>"),
        ("한국어<sup>1</sup>는 언어", "한국어<sup>1</sup>는 언어"),
    ],
)
def test_references_to_notes_are_not_read(text: str, expected: str) -> None:
    [span] = [part for part in parse(text) if isinstance(part, Span)]
    links = [(number, number) for number in range(len(span.plain.split()))]
    assert insert_tags(span.tags, span.plain, span.plain.upper(), links) == expected
    assert not any(map(str.isdigit, span.plain)) and "*" not in span.plain


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("<b>5</b> dogs drink H<sub>2</sub>O", "5 dogs drink H2O"), ("It costs $<b>50</b>.", "It costs $50."),
        ("A dog (<i>1</i>) runs", "A dog (1) runs"), ("Press <b>(1)</b> or <b>(2)</b>.", "Press (1) or (2)."),
        ("costs $<sup>5</sup>", "costs $5"), ("10<sup>3</sup>個", "103個"), ("न<sup>2</sup>त है", "न2त है"),
    ],
)  # fmt: skip
def test_other_numbers_are_read(text: str, plain: str) -> None:
    [span] = [part for part in parse(text) if isinstance(part, Span)]
    assert span.plain == plain


def test_each_placeholder_must_occur_as_often() -> None:
    assert are_kept("{a} {a} b", "b {a} {a}")
    assert not are_kept("{a} {a} b", "b {a}")
    assert are_kept("b", "{a}")


def test_a_removed_placeholder_leaves_one_space() -> None:
    plain, tags = without_placeholders("I met {name} yesterday ({x}).")
    assert plain == "I met yesterday ()."
    assert [(tag.text, tag.place, tag.glued_left, tag.glued_right) for tag in tags] == [
        ("{name}", 6, False, False), ("{x}", 17, True, True),
    ]  # fmt: skip
    links = [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert insert_tags(tags, plain, "Ich traf gestern ().", links) == "Ich traf {name} gestern ({x})."


@pytest.mark.parametrize(
    "text",
    [
        "Erreur {0}\u202f: inconnu", "Erreur {0}\u202f:", "page\xa0{0} lue", "entre «\xa0{0}\xa0» et lui",
        "Erreur {0} : inconnu", "le {0}\xa0jour", "sans {0}-{1}\xa0! Non",
    ],
)  # fmt: skip
def test_spaces_around_a_placeholder_stay_where_they_were(text: str) -> None:
    plain, tags = without_placeholders(text)
    links = [(number, number) for number in range(len(plain.split()))]
    assert insert_tags(tags, plain, plain, links) == text


@pytest.mark.parametrize("text", ["Total {0}{1} !", "Mot\xa0{0} {1} : mot", "Mot! {0}{1}\xa0! Mot", "{0}{1} : mot"])
def test_placeholders_side_by_side_keep_their_order(text: str) -> None:
    builder = PartsBuilder()
    for part in re.split(r"(\{.\})", text):
        (builder.single_tag if part.startswith("{") else builder.add_text)(part)
    [span] = builder.parts()
    assert isinstance(span, Span)
    for plain, tags in [(span.plain, span.tags), without_placeholders(text)]:
        links = [(number, number) for number in range(len(plain.split()))]
        assert re.findall(r"\{.\}", insert_tags(tags, plain, plain, links)) == re.findall(r"\{.\}", text)


@pytest.mark.parametrize("space", ["\xa0", "\u202f"])
def test_a_placeholder_is_not_separated_from_its_word_by_the_space_before_a_sign(space: str) -> None:
    plain, tags = without_placeholders("Error {0}: unknown")
    links = [(0, 0), (1, 1), (2, 2)]
    assert insert_tags(tags, plain, f"Erreur{space}: inconnue", links) == f"Erreur {{0}}{space}: inconnue"
    plain, tags = without_placeholders(f"Erreur {{0}}{space}: inconnue")
    assert insert_tags(tags, plain, "Error: unknown", [(0, 0), (2, 1)]) == "Error {0}: unknown"


@pytest.mark.parametrize(
    "text",
    [
        "Mot\xa0<img>\u202f: mot",
        "Mot <img>\xa0mot",
        "«\xa0<img> mot",
        "Mot <img> !",
        "Mot\xa0<img>",
        "Mot <img>\xa0– mot",
    ],
)
def test_no_break_spaces_stay_on_their_side_of_a_tag(text: str) -> None:
    before, _, after = text.partition("<img>")
    builder = PartsBuilder()
    builder.add_text(before)
    builder.single_tag("<img>")
    builder.add_text(after)
    parts = builder.parts()
    span = parts[0]
    assert isinstance(span, Span)
    links = [(number, number) for number in range(len(span.plain.split()))]
    rest = "".join(part for part in parts if isinstance(part, str))
    assert insert_tags(span.tags, span.plain, span.plain, links) + rest == text


@pytest.mark.parametrize(
    ("text", "target", "links", "expected"),
    [
        ("合計%d件", "Total", [(0, 0)], "Total %d"),
        ("サイズ：{0}バイト", "Size:", [(0, 0)], "Size:{0}"),
        ("Erreur {0}\xa0: fichier", "Error: file", [(0, 0), (2, 1)], "Error {0}: file"),
        ("Supprimer {name}\u202f? Oui", "Delete? Yes", [], "Delete? {name} Yes"),
    ],
)
def test_a_placeholder_at_the_end_or_before_a_sign_of_the_source_alone(
    text: str, target: str, links: Links, expected: str
) -> None:
    plain, tags = without_placeholders(text)
    assert insert_tags(tags, plain, target, links) == expected


def test_tags_next_to_a_placeholder_leave_it_whole() -> None:
    tags = [InlineTag("<b>", 3, "open", 1), InlineTag("</b>", 9, "close", 1)]
    links = [(0, 0), (1, 1), (2, 2)]
    assert insert_tags(tags, "{0}A girl runs", "{0}Ein Kind rennt", links) == "{0}<b>Ein Kind</b> rennt"
    tags = [InlineTag("<b>", 2, "open", 1), InlineTag("</b>", 6, "close", 1)]
    assert insert_tags(tags, "A girl{0} runs", "Ein Kind{0} rennt", links) == "Ein <b>Kind</b>{0} rennt"


@example([(0, 3), (1, 4), (2, 5), (5, 0)], [1, 5])
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12), st.lists(st.integers(0, 6), max_size=4))
def test_tags_whose_partners_are_in_other_sentences_keep_their_order(links: Links, places: list[int]) -> None:
    """The tag that opens last in one sentence closes first in the other."""
    source, target = "ab cd ef gh ij kl", "mn op qr st uv wx"
    at = [min(3 * place, len(source)) for place in sorted(places)]
    opens = [InlineTag(f"<{number}>", place, "open", number) for number, place in enumerate(at)]
    closes = [
        InlineTag(f"</{number}>", place, "close", number)
        for number, place in zip(range(len(at))[::-1], at, strict=True)
    ]
    for tags in (opens, closes):
        assert re.findall("<[^>]*>", insert_tags(tags, source, target, sorted(set(links)))) == [
            tag.text for tag in tags
        ]
