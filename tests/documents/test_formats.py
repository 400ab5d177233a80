"""Translation of whole files: formats, encodings, and what is refused."""

from __future__ import annotations

import codecs

import pytest
from loud import STEP, Each, translated

from heed.core.errors import DataError, UsageError
from heed.documents.file_format import FileContext
from heed.documents.formats import format_of, translate_file
from heed.documents.subtitles import _wrapped
from heed.documents.text_translator import TextTranslator
from heed.documents.translation import TranslateOptions
from heed.text.readers.columns import Sides


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("name", ["a.txt", "A.TXT", "x\\a.txt"])
def test_utf_8_keeps_its_mark_and_line_ends(mark: bytes, name: str) -> None:
    assert translated(name, mark + b"a\r\nb\n") == mark + b"A\r\nB\n"


@pytest.mark.parametrize(("encoding", "mark"), [("utf-16-le", codecs.BOM_UTF16_LE), ("utf-16-be", codecs.BOM_UTF16_BE)])
def test_utf_16_stays_utf_16(encoding: str, mark: bytes) -> None:
    data = mark + "English,German\r\nä dog,\r\n".encode(encoding)
    expected = mark + "English,German\r\nä dog,Ä DOG\r\n".encode(encoding)
    assert translated("a.csv", data) == expected


def test_a_memory_in_an_old_encoding_writes_missing_characters_by_number() -> None:
    head = '<?xml version="1.0" encoding="ISO-8859-1"?>'
    text = head + '<tmx><body><tu><tuv xml:lang="en"><seg>ä ÿ</seg></tuv></tu></body></tmx>'
    done = translated("m.tmx", text.encode("latin-1"))
    assert "<seg>Ä &#376;</seg>" in done.decode("latin-1")


@pytest.mark.parametrize(
    ("name", "data", "error", "message"),
    [
        ("a.xyz", b"", UsageError, r"a\.xyz: \.xyz is not supported\. Supported formats: \.txt, \.md"),
        ("a.xls", b"", UsageError, r"Save it as xlsx in LibreOffice \(soffice --convert-to xlsx\)"),
        ("a.pdf", b"", UsageError, "pdf2docx"),
        ("a.doc", b"", UsageError, "LibreOffice"),
        ("a.rtf", b"", UsageError, "LibreOffice"),
        ("a.epub", b"", UsageError, "ebook-convert"),
        ("a.docm", b"", UsageError, r"does not take files with macros\. Save it as \.docx"),
        ("a", b"", UsageError, "a file without a suffix is not supported"),
        ("a.txt", b"a\n\xff\n", DataError, "a.txt:2: byte 1 is not valid UTF-8"),
        ("a.csv", b"PK\x03\x04\xff", DataError, "spreadsheet"),
        ("a.csv", b'a,b\n"x,y\n', DataError, "a.csv:2: not CSV"),
        ("a.csv", codecs.BOM_UTF16_LE + b"a", DataError, "UTF-16"),
    ],
)
def test_files_that_cannot_be_read_are_refused(name: str, data: bytes, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        translated(name, data)


def test_utf_16_without_a_mark_is_recognised_by_its_zeros() -> None:
    data = "English,German\r\na dog,\r\n".encode("utf-16-le")
    assert translated("a.csv", data).decode("utf-16-le") == "English,German\r\na dog,A DOG\r\n"


def test_a_file_translated_into_its_own_language_is_unchanged() -> None:
    nowhere = TextTranslator(Each(str.upper), [], TranslateOptions())
    assert translate_file(b"<tmx/>", nowhere, FileContext("m.tmx", Sides("de", "de"))) == b"<tmx/>"


@pytest.mark.parametrize(
    ("charset", "encoding"),
    [
        ('charset="iso-8859-1"', "cp1252"),
        ("charset=US-ASCII", "cp1252"),
        ('charset="windows-1252"', "cp1252"),
        ('http-equiv="Content-Type" content="text/html; charset=ISO-8859-2"', "iso8859-2"),
        ("charset=iso-8859-9", "cp1254"),
        ("charset=utf-8", "utf-8"),
        ("charset=unknown", "utf-8"),
        ("charset=utf-16", "utf-8"),
        ("charset=utf-7", "utf-8"),
        ('name="charset"', "utf-8"),
    ],
)
def test_html_keeps_the_encoding_that_it_declares(charset: str, encoding: str) -> None:
    page = f"<html><head><!-- <meta charset=koi8-r> --><meta {charset}></head><p>ein ö</p>"
    done = translated("a.html", page.encode(encoding), sides=Sides("en", ""))
    assert done == page.replace("ein ö", "EIN Ö").encode(encoding)


def test_html_writes_characters_that_its_encoding_lacks_by_number() -> None:
    page = '<html><head><meta charset="iso-8859-1"></head><body><p>a &#8364; dog</p><img alt="a"></body></html>'
    done = translated("a.html", page, lambda text: f"{text} ä Ł –", sides=Sides("en", ""))
    assert done.decode("cp1252") == page.replace("dog", "dog ä &#321; –").replace('"a"', '"a ä &#321; –"').replace(
        "&#8364;", "€"
    )


@pytest.mark.parametrize(
    ("start", "page"),
    [
        (codecs.BOM_UTF8, "<meta charset=iso-8859-1><p>ä dog</p>"),
        (b"", "<meta charset=iso-8859-1><p>ä dog</p>"),  # whatever it declares
        (b"", "<p>ä dog</p><body><meta charset=iso-8859-1>"),
    ],
)
def test_html_in_utf_8_stays_utf_8(start: bytes, page: str) -> None:
    assert translated("a.html", start + page.encode()) == start + page.replace("ä dog", "Ä DOG").encode()


def test_html_of_another_kind_is_read_as_browsers_read_it() -> None:
    xml = '<?xml version="1.0" encoding="iso-8859-2"?><p>č</p>'
    assert translated("a.html", xml.encode("iso8859-2")) == xml.replace("č", "Č").encode("iso8859-2")
    late = f"<style>{' ' * 2000}</style><meta charset=shift_jis><p>日本 a</p>"
    assert translated("a.html", late.encode("cp932")) == late.replace("日本 a", "日本 A").encode("cp932")
    wide = "<meta charset=iso-8859-1><p>ä dog</p>"
    assert translated("a.html", wide.encode("utf-16-le")) == wide.replace("ä dog", "Ä DOG").encode("utf-16-le")
    with pytest.raises(DataError, match="not valid UTF-8"):
        translated("a.html", "<p>ä</p>".encode("latin-1"))


def test_html_in_another_language_stays_and_translated_elements_get_the_new_language() -> None:
    page = (
        '<html lang="en-GB" xml:lang="en"><p lang="en" title="a">A dog</p><p lang="fr" title="b">Un chien</p>'
        '<a lang="de" title="c">Ein <b>Hund</b></a> dog <span lang="en-US">cat</span><img lang="fr" alt="d"></html>'
    )
    done = (
        '<html lang="de" xml:lang="de"><p lang="de" title="A">A DOG</p><p lang="fr" title="b">Un chien</p>'
        '<a lang="de" title="c">Ein <b>Hund</b></a> DOG <span lang="de">CAT</span><img lang="fr" alt="d"></html>'
    )
    assert translated("a.html", page).decode() == done
    text = TextTranslator(Each(str.upper), [STEP], TranslateOptions())
    assert text.html('<p lang="en">a</p><p lang="fr">b</p>').text == '<p lang="en">A</p><p lang="fr">b</p>'


def test_html_keeps_tags_of_templates_in_texts_of_attributes() -> None:
    page = (
        '<p title="{{ _("a") }} b &amp; {% if x %}c{% endif %}" lang="{{ lang }}">{{ d }} e</p><img alt="{{ f }}">'
        "<img alt={{f}}g><a {% if x %}title='h'{% endif %}>i"
    )
    done = (
        '<p title="{{ _("a") }} B &amp; {% if x %}C{% endif %}" lang="{{ lang }}">{{ d }} E</p><img alt="{{ f }}">'
        "<img alt={{f}}g><a {% if x %}title='H'{% endif %}>I"
    )
    assert translated("a.html", page).decode() == done


SUBTITLES = """1
00:00:01,000 --> 00:00:02,500
- hello.
- a girl
2
00:00:03,000 --> 00:00:04,000
<i>two lines</i>

3
00:00:05,000 --> 00:00:06,000
one
- two
"""


def test_subtitles_keep_speakers_apart_and_need_no_empty_line_between_them() -> None:
    done = translated("a.srt", SUBTITLES.encode()).decode()
    assert done == SUBTITLES.replace("hello", "HELLO").replace("a girl", "A GIRL").replace(
        "two lines", "TWO LINES"
    ).replace("one\n- two", "ONE -\nTWO")


def test_subtitles_whose_lines_end_with_a_carriage_return_alone_are_translated() -> None:
    text = SUBTITLES.replace("\n", "\r").encode()
    done = translated("a.srt", text)
    assert done == translated("a.srt", SUBTITLES.encode()).replace(b"\n", b"\r") != text
    web = f"WEBVTT\n\n{SUBTITLES}".encode()
    assert translated("a.vtt", web.replace(b"\n", b"\r")) == translated("a.vtt", web).replace(b"\n", b"\r")


def test_a_subtitle_goes_on_behind_an_empty_line_but_a_note_of_webvtt_does_not() -> None:
    times = "00:00:01.000 --> 00:00:02.000"
    text = f"1\n{times}\none\n\ntwo\nthree\n\n\n2\n{times}\n\nfour\n"
    done = "one\n\ntwo\nthree", "\n\nfour\n"
    assert translated("a.srt", text).decode() == text.replace(done[0], done[0].upper()).replace(done[1], "\n\nFOUR\n")
    notes = f"WEBVTT\n\n{times}\none\n\nNOTE two\nthree\n"
    assert translated("a.vtt", notes).decode() == notes.replace("one", "ONE")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{\\an8}- one.\n- two.", "{\\an8}- ONE.\n- TWO."),
        ("<i>- one.</i>\n<i>- two.</i>", "<i>- ONE.</i>\n<i>- TWO.</i>"),
        ("{\\an8}one", "{\\an8}ONE"),
        ("-\r\n-\r", "-\r\n-\r"),
        ('<font color="#ffff00">hello</font>\nx', '<font color="#ffff00">HELLO</font>\nX'),
    ],
)
def test_codes_and_tags_of_subtitles_stay_whole_and_first(text: str, expected: str) -> None:
    times = "00:00:01,000 --> 00:00:02,000\n"
    assert translated("a.srt", f"{times}{text}\n".encode()).decode() == f"{times}{expected}\n"


def test_the_sample_of_a_file_is_decoded_as_the_file() -> None:
    assert format_of("a.txt").sample(codecs.BOM_UTF16_LE + "ä dog".encode("utf-16-le"), "a.txt").endswith("ä dog")
    assert format_of("a.txt").sample(b"a\xff", "a.txt") == "a\ufffd"


def test_bad_bytes_can_be_replaced() -> None:
    assert translated("a.txt", b"a\xff", errors="replace").decode() == "A\ufffd"
    memory = b'<tmx><body><tu><tuv xml:lang="en"><seg>a\x01</seg></tuv></tu></body></tmx>'
    assert "<seg>A\ufffd</seg>" in translated("m.tmx", memory, errors="replace").decode()


@pytest.mark.parametrize(
    ("text", "num_lines", "expected"),
    [
        ("one two three four", 2, ["one two", "three four"]),
        ("one two three four", 1, ["one two three four"]),
        ("onetwo", 2, ["onetwo"]),
        ("a b c", 5, ["a", "b", "c"]),
    ],
)
def test_subtitles_are_broken_into_lines_of_similar_length(text: str, num_lines: int, expected: list[str]) -> None:
    assert _wrapped(text, num_lines) == expected
