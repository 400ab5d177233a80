"""Catalogues, JSON and subtitles: forms, placeholders, tags and codes are kept, and what is done already stays."""

from __future__ import annotations

import json

import pytest
from loud import given, translated

from heed.core.errors import DataError

HEADER = 'msgid ""\nmsgstr ""\n"Language: \\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
POLISH = '"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);\\n"\n'
CATALOGUE = (
    HEADER
    + POLISH
    + r"""
# translators, hello
#: a.c:1
#, c-format
msgid "Hello %s, <b>you</b> have {n} \"files\"\n"
msgstr ""

msgctxt "menu"
msgid "Done"
msgstr "Gemacht"

#, fuzzy
#| msgid "before"
msgid "guess"
msgstr "alt"

msgid "one file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid ""
"First line\n"
"second line"
msgstr ""

#, fuzzy
#~ msgid "gone"
#~ msgstr ""

msgid "after"
msgstr ""
"""
)


def test_a_catalogue_gets_its_missing_translations_and_no_other_byte_changes() -> None:
    expected = CATALOGUE
    for before, after in (
        ('"Language: \\n"', '"Language: de\\n"'),
        ('\\"files\\"\\n"\nmsgstr ""', '\\"files\\"\\n"\nmsgstr "HELLO %s, <b>YOU</b> HAVE {n} \\"FILES\\"\\n"'),
        ('"alt"', '"GUESS"'),
        ('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "ONE FILE"\nmsgstr[1] "%d FILES"\nmsgstr[2] "%d FILES"'),
        ('"second line"\nmsgstr ""', '"second line"\nmsgstr ""\n"FIRST LINE\\n"\n"SECOND LINE"'),
        ('"after"\nmsgstr ""', '"after"\nmsgstr "AFTER"'),
    ):
        assert before in expected
        expected = expected.replace(before, after)
    assert translated("a.po", CATALOGUE).decode() == expected
    assert translated("a.po", expected.replace("#, fuzzy\n#|", "#|")).decode() == expected.replace("#, fuzzy\n#|", "#|")
    windows = translated("a.po", CATALOGUE.replace("\n", "\r\n")).decode()
    assert windows == expected.replace("\n", "\r\n")


def test_only_the_header_gets_the_language_and_the_charset() -> None:
    fields = '"Language: \\n"\n"Content-Type: text/plain; charset=ASCII\\n"\n'
    message = f'\nmsgid ""\n{fields}msgstr ""\n"x"\n'
    header = f'msgid ""\nmsgstr ""\n{fields}'
    new = '\nmsgid "a dog"\nmsgstr ""\n'
    done = translated("a.po", header + message + new, lambda text: f"ä {text}").decode()
    expected = header.replace("Language: ", "Language: de").replace("ASCII", "UTF-8") + message
    assert done == expected + new.replace('msgstr ""', 'msgstr "ä a dog"')
    assert translated("a.po", expected).decode() == expected


def test_the_mark_of_an_obsolete_entry_is_not_that_of_the_next_one() -> None:
    text = (
        HEADER.replace("Language: ", "Language: de")
        + '\n#, fuzzy\n#~ msgid "x"\n#~ msgstr "y"\nmsgid "a"\nmsgstr "b"\n'
    )
    assert translated("a.po", text).decode() == text


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One line<br>two lines<br/>three <BR /> four", ["One line", "two lines", "three", "four"]),
        ("<p>One <b>word</b></p><ul><li>Two</li></ul>", ["One word", "Two"]),
        ("<b>One<br>two</b> three", ["One", "two three"]),
    ],
)
def test_tags_of_lines_and_blocks_separate_texts_in_messages(text: str, sentences: list[str]) -> None:
    catalogue = json.dumps({"a": text})
    assert given("a.json", catalogue) == sentences
    done = translated("a.json", catalogue).decode()
    assert done.upper() == catalogue.upper() and "<b" in done.lower()


def test_polib_reads_the_same_catalogue() -> None:
    polib = pytest.importorskip("polib", reason="polib, another reader of PO files, is not installed")
    before, after = polib.pofile(CATALOGUE), polib.pofile(translated("a.po", CATALOGUE).decode())
    assert [entry.msgid for entry in after] == [entry.msgid for entry in before]
    assert [entry.msgstr for entry in after if not entry.msgid_plural and not entry.obsolete] == [
        'HELLO %s, <b>YOU</b> HAVE {n} "FILES"\n', "Gemacht", "GUESS", "FIRST LINE\nSECOND LINE", "AFTER",
    ]  # fmt: skip
    assert after.find("one file").msgstr_plural == {0: "ONE FILE", 1: "%d FILES", 2: "%d FILES"}
    assert [entry.flags for entry in after] == [entry.flags for entry in before]
    assert after.metadata["Language"] == "de"


def test_a_long_translation_is_wrapped_if_its_source_is() -> None:
    text = "word " * 40
    wrapped = translated("a.po", f'msgid ""\n"{text[:75]}"\n"{text[75:]}"\nmsgstr ""\n').decode().partition("msgstr")[2]
    assert wrapped.startswith(' ""\n"WORD')
    assert max(map(len, wrapped.splitlines())) <= 78
    assert text.strip().upper() in wrapped.replace('"\n"', "")


@pytest.mark.parametrize(
    ("forms", "text", "expected"),
    [
        ("nplurals=1; plural=0", 'msgstr[0] ""', ["%d FILES"]),
        ("nplurals=2; plural=(n > 1)", 'msgstr[0] ""\nmsgstr[1] ""', ["ONE FILE", "%d FILES"]),
        ("nplurals=INTEGER; plural=EXPRESSION", 'msgstr[0] ""\nmsgstr[1] ""', ["ONE FILE", "%d FILES"]),
        ("nplurals=2; plural=__import__('os')", 'msgstr[0] ""\nmsgstr[1] ""', ["ONE FILE", "%d FILES"]),
        ("nplurals=2; plural=n != 1", 'msgstr[0] "ein"\nmsgstr[1] ""', ["ein", "%d FILES"]),
    ],
)
def test_each_language_gets_its_forms(forms: str, text: str, expected: list[str]) -> None:
    header = f'msgid ""\nmsgstr "Plural-Forms: {forms};\\n"\n\n'
    done = translated("a.po", f'{header}msgid "one file"\nmsgid_plural "%d files"\n{text}\n').decode()
    written = "".join(f'msgstr[{number}] "{each}"\n' for number, each in enumerate(expected))
    assert done.endswith(f'"%d files"\n{written}')


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'msgid "a"\nmsgstr "b\n', "a.po:2: not a line of a PO file"),
        (b"hello\n", "a.po:1: not a line of a PO file: hello"),
        (b'msgid ""\nmsgstr "Content-Type: text/plain; charset=punycode"\n', "unsupported encoding punycode"),
        (b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8"\nmsgid "\xff"\n', "a.po:3: byte 8 is not valid"),
    ],
)
def test_what_is_no_catalogue_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        translated("a.po", data)


def test_a_catalogue_in_an_old_encoding_keeps_it_or_becomes_utf_8_if_it_lacks_a_letter() -> None:
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset={}"\n\n'
    message = 'msgid "ä charset=ISO-8859-1"\nmsgstr "{}"\n'
    data = (header.format("ISO-8859-1") + message.format("")).encode("latin-1")
    kept = header.format("ISO-8859-1") + message.format("Ä CHARSET=ISO-8859-1")
    assert translated("a.po", data) == kept.encode("latin-1")
    assert translated("a.po", data, lambda _: "Ž").decode() == header.format("UTF-8") + message.format("Ž")


# JSON


STRINGS = r"""{ "a": "Hello {name}", "k_one": "A file", "k_other": "{{count}} files", "a": "Again",
 "icu": "You have {n, plural, =0 {no files} one {# file} other {# <b>files</b> for {g, select, f {her} other {x}}}}.",
 "code": "btn_ok", "colour": "#ff00ff", "date": "2026-11-26", "@a": {"description": "Left alone"},
 "chrome": {"description": "Left alone", "message": "Yes \u00e9", "placeholders": {"x": {"content": "Left alone"}}},
 "list": ["One", "img/a.png", 1.50, null, true, "\ud800 bad"], "tags": "<1>Hi</1> &amp; &eacute;<br/>\n" }
"""


def test_strings_of_json_are_translated_where_they_are() -> None:
    expected = STRINGS
    for before, after in (
        ("Hello {", "HELLO {"), ("A file", "A FILE"), ("}} files", "}} FILES"), ("Again", "AGAIN"),
        ("You have", "YOU HAVE"),
        ("{no files}", "{NO FILES}"), ("# file}", "# FILE}"), ("<b>files</b> for", "<b>FILES</b> FOR"),
        ("{her}", "{HER}"), (">Hi<", ">HI<"),
        ("{x}}", "{X}}"), (r"Yes \u00e9", r"YES \u00c9"), ("One", "ONE"), ("&eacute;<br", r"\u00c9<br"),
    ):  # fmt: skip
        assert before in expected
        expected = expected.replace(before, after)
    assert translated("a.json", STRINGS).decode() == expected
    assert translated("a.json", STRINGS, str).decode() == STRINGS
    json.loads(expected)


def test_json_keeps_letters_slashes_and_line_ends_as_they_are_written() -> None:
    arb = '{"@@locale": "en_US", "a": "b", "@a": {"description": "c"}}'
    assert translated("a.arb", arb).decode() == arb.replace("en_US", "de").replace('"b"', '"B"')
    assert translated("a.arb", '{"ä":"größe",\r\n\t"b":"Mit Ü"}').decode() == '{"ä":"GRÖSSE",\r\n\t"b":"MIT Ü"}'
    assert translated("a.json", r'["a\/b und \"x\""]').decode() == r'["A\/B UND \"X\""]'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", r'["\u00007\u0000 hello there", "@"]'),
        ("a.json", r'["\u00000\u0000 hello there", "{n, plural, other {@}}"]'),
        ("a.json", r'["\ud83d hello there", "@"]'),
        ("a.yaml", r'["\x007\x00 hello there", "@"]'),
        ("a.yaml", r'["\ud83d hello there", "@"]'),
    ],
)
def test_strings_that_are_not_text_stay(name: str, text: str) -> None:
    assert translated(name, text.replace("@", "a")).decode() == text.replace("@", "A")


def test_an_entry_with_a_character_that_is_not_text_gets_it_as_its_translation() -> None:
    entry = 'msgid "\\0007\\000 hello"\nmsgstr "{}"\n'
    assert translated("a.po", entry.format("")).decode() == entry.format("\\0007\\000 hello")


@pytest.mark.parametrize("text", ["{", '{"a": 1,}', "[" * 100_000, '{"a" "b"}', "nothing"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(DataError, match=r"a\.json: not JSON"):
        translated("a.json", text)


@pytest.mark.parametrize(
    ("message", "sentences"),
    [
        ("{n, plural, one {You can''t go.} other {# can''t}}", ["You can't go.", "can't"]),
        ("{n, plural, one {Type '{' or '#' here.} other {no}}", ["Type or here.", "no"]),
        ("It''s {g, select, f {a '''{it''s}' dog} other {'# a}}", ["It's", "a ' dog", "'# a"]),
        ("{n, plural, one {I don't} other {the '<b>dogs'</b> 'quoted'}}", ["I don't", "the 'dogs' 'quoted'"]),
        ("{n, plural, one {it's} other {it''s not}}", ["it's", "it's not"]),
        ("l'{n, plural, one {d'un} other {''}}", ["l'", "d'un"]),  # not what ICU reads: nothing is quoted
        ("{n, plural, one {of '{name} now} other {of '{name} then}}", ["of '{name} now", "of '{name} then"]),
        ("It''s {name}", ["It''s {name}"]),
    ],
)
def test_the_model_reads_the_apostrophes_of_icu_messages(message: str, sentences: list[str]) -> None:
    catalogue = json.dumps({"a": message})
    assert given("a.json", catalogue) == sentences
    assert translated("a.json", catalogue, str).decode() == catalogue


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("{n, plural, one {It''s a dog} other {The dog is}}", "{n, plural, one {C''est l''a} other {L''a}}"),
        ("{n, plural, one {A dog {name}} other {dogs#}}", "{n, plural, one {d''{name}} other {d''#}}"),
        ("{n, plural, one {A cat} other {The dog is}}", "{n, plural, one {d''} other {L'a}}"),
        ("A cat{n, plural, one {The dog is} other {it}}", "d''{n, plural, one {L'a} other {it}}"),
    ],
)
def test_an_apostrophe_of_a_translation_does_not_quote_what_follows(message: str, expected: str) -> None:
    outputs = {
        "It's a dog": "C'est l'a", "The dog is": "L'a", "A dog {name}": "d'{name}", "dogs": "d'", "A cat": "d'",
    }  # fmt: skip
    done = translated("a.json", json.dumps([message]), lambda text: outputs.get(text, text))
    assert json.loads(done) == [expected]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("See <img/>\n\nNext paragraph", ["See", "Next paragraph"]),
        ("<icon/>\nText here.", ["Text here."]),
        ("a <x/>  <x/> <x/>\n\n<x/>\n", ["a"]),
        ("<b>\nTwo <i>\tdogs</i> </b>\n<i> run</i>  <x/>  now", ["Two dogs", "run  now"]),
        ("See <a>[2]</a>\nNext <a>[3]</a>\tone", ["See", "Next one"]),
    ],
)
def test_white_space_next_to_the_tags_of_messages_stays_and_line_breaks_end_sentences(
    text: str, sentences: list[str]
) -> None:
    catalogue = json.dumps({"a": text})
    assert given("a.json", catalogue) == sentences
    assert translated("a.json", catalogue, str).decode() == catalogue


# Subtitles


VTT = """WEBVTT - a header

NOTE left alone
in two lines

STYLE
::cue(b) { color: red }

intro
00:01.000 --> 00:02.000 align:start position:0%
<v Ann Lee>Hello there, you are my
<c.yellow.bg>only friend</c> &amp; <00:01.500>more.

00:00:03.000 --> 00:00:04.000
- <i>one</i>
- two
"""


def test_web_subtitles_keep_settings_notes_voices_and_times() -> None:
    assert translated("a.vtt", VTT, str).decode() == VTT
    expected = VTT
    for before, after in (
        ("Hello there, you are my", "HELLO THERE, YOU ARE MY"), ("only friend", "ONLY FRIEND"), (">more", ">MORE"),
        (">one<", ">ONE<"), ("- two", "- TWO"),
    ):  # fmt: skip
        expected = expected.replace(before, after)
    assert translated("a.vtt", VTT).decode() == expected
    with pytest.raises(DataError, match=r"a\.vtt: a \.vtt file starts with WEBVTT"):
        translated("a.vtt", "1\n00:01.000 --> 00:02.000\na\n")


def test_a_line_of_subtitles_that_ends_a_sentence_still_does() -> None:
    times = "1\n00:00:01,000 --> 00:00:02,000\n"
    longer = {"Hello.": "A very long greeting to you.", "How are you?": "Well?"}
    done = translated("a.srt", f"{times}Hello.\nHow are you?\n", lambda text: longer[text]).decode()
    assert done == f"{times}A very long greeting to you.\nWell?\n"
    assert given("a.srt", f"{times}He went to the\n<i>house.</i>\nAnd back.\n") == [
        "He went to the house.",
        "And back.",
    ]


@pytest.mark.parametrize("mark", [*".!?…。！？।॥؟۔։။።", "!»", "।”"])
def test_the_end_marks_of_all_scripts_end_sentences_of_subtitles(mark: str) -> None:
    times = "1\n00:00:01,000 --> 00:00:02,000\n"
    longer = {f"one two{mark}": "one two three four five", f"three four{mark}": "six"}
    done = translated("a.srt", f"{times}one two{mark}\nthree four{mark}\n", lambda text: longer[text]).decode()
    assert done == f"{times}one two three four five\nsix\n"


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        ("我昨天在公园里看见了一只大狗。", ["我昨天在公园里", "看见了一只大狗。"]),
        ("我昨天看见了，一只很大的狗。", ["我昨天看见了，", "一只很大的狗。"]),
        ("<i>我昨天在公园里看见了一只大狗</i>", ["<i>我昨天在公园里", "看见了一只大狗</i>"]),
        ("我在London Bridge看见了它", ["我在London", "Bridge看见了它"]),
        ("スーパーでビールを飲んだ", ["スーパーで", "ビールを飲んだ"]),
        ("ฉันเห็นหมา ตัวใหญ่ในสวน", ["ฉันเห็นหมา", "ตัวใหญ่ในสวน"]),
        ("กกกเกกก", ["กกก", "เกกก"]),
        ("ကကက္ကကက", ["ကက", "က္ကကက"]),
        ("狗", ["狗"]),
    ],
)
def test_subtitles_in_scripts_without_spaces_are_wrapped(output: str, lines: list[str]) -> None:
    times = "1\n00:00:01,000 --> 00:00:02,000\n"
    done = translated("a.srt", f"{times}yesterday I saw a\nlarge dog in the park\n", lambda _: output).decode()
    assert done.removeprefix(times).splitlines() == lines


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("昨日公園で\n犬を見ました", "昨日公園で犬を見ました"),
        ("昨日、\n{\\i1}犬を見た", "昨日、{\\i1}犬を見た"),
        ("我在\nLondon", "我在 London"),
        ("ฉันเห็น\nหมา", "ฉันเห็นหมา"),
        ("나는\n개를", "나는 개를"),
    ],
)
def test_lines_of_scripts_without_spaces_are_joined_without_one(text: str, sentence: str) -> None:
    assert given("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n") == [sentence]


# HTML files


def test_a_page_gets_its_language_and_the_texts_in_its_attributes() -> None:
    page = (
        '<!DOCTYPE html><html class=x lang=en xml:lang="en"><head><title>A title</title>'
        '<meta name="description" content="a &quot;word&quot;"><meta name="author" content="somebody"></head>'
        "<body><p>See <img alt='it is' src=a.png> the <b>dog</b>.<input placeholder=name><img alt=''>"
        '<a title="go" href="b" translate="no">Not</a></p></body></html>'
    )
    expected = page
    for before, after in (
        ('lang=en xml:lang="en"', 'lang="de" xml:lang="de"'), ("A title", "A TITLE"), ("a &quot;word", "A &quot;WORD"),
        ("it is", "IT IS"), ("See", "SEE"), ("the <b>dog", "THE <b>DOG"), ("placeholder=name", 'placeholder="NAME"'),
    ):  # fmt: skip
        expected = expected.replace(before, after)
    assert translated("a.html", page).decode() == expected
    assert translated("a.html", "<html><p>a</p>").decode() == '<html lang="de"><p>A</p>'
    assert translated("a.html", "<p>\x00" + "00\x00</p>").decode() == "<p>\ufffd00\ufffd</p>"


@pytest.mark.parametrize("charset", ["ASCII", "CHARSET", "US-ASCII"])
def test_a_catalogue_without_an_encoding_becomes_utf_8_if_a_translation_needs_it(charset: str) -> None:
    text = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n\nmsgid "A dog"\nmsgstr "{}"\n'
    assert translated("a.po", text.format(charset, "")).decode() == text.format(charset, "A DOG")
    done = translated("a.po", text.format(charset, ""), lambda _: "Ein H\u00fcndchen")
    assert done.decode() == text.format("UTF-8", "Ein H\u00fcndchen")


def test_escapes_by_number_in_a_catalogue_are_bytes_of_utf_8() -> None:
    entry = HEADER + r'msgid "caf\303\251 \xe2\x82\xac \101 \\303 \t\351"' + '\nmsgstr ""\n'
    assert given("a.po", entry) == ["café € A \\303 \té"]
