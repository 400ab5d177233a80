"""Translation memories: the text that a translator saw, and files that do harm."""

from __future__ import annotations

import gzip
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from heed.core.errors import DataError, HeedError, UsageError
from heed.text.readers import CorpusFiles, read_pairs, tmx, with_languages_of
from heed.text.readers.tmx import read_units

HEAD = '<?xml version="1.0"{}?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header srclang="en"/><body>\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, so that messages show the bare names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def unit(**texts: str) -> str:
    """A unit; the languages are given as `en`, `de_DE`."""
    return "<tu>" + "".join(
        f'<tuv xml:lang="{language.replace("_", "-")}"><prop type="x">no text</prop><seg>{text}</seg></tuv>'
        for language, text in texts.items()
    ) + "</tu>\n"  # fmt: skip


def memory(*units: str, encoding: str = "") -> str:
    return HEAD.format(encoding and f' encoding="{encoding}"') + "".join(units) + "</body></tmx>"


def pairs_of(
    data: str | bytes,
    src_lang: str = "en",
    tgt_lang: str = "de",
    left_out: Counter[str] | None = None,
    errors: Any = "strict",
) -> list[tuple[str, str]]:
    Path("m.tmx").write_bytes(data if isinstance(data, bytes) else data.encode())
    files = CorpusFiles(pairs="m.tmx", src_lang=src_lang, tgt_lang=tgt_lang)
    return list(read_pairs(files, errors, left_out))


def message(data: str | bytes, src_lang: str = "en", tgt_lang: str = "de", kind: type[HeedError] = DataError) -> str:
    with pytest.raises(kind) as caught:
        pairs_of(data, src_lang, tgt_lang)
    return str(caught.value)


def test_units_with_both_languages_are_pairs_and_the_others_are_counted() -> None:
    left_out: Counter[str] = Counter()
    text = memory(
        unit(en_US="A dog.", de_DE="Ein Hund."), unit(en="A cat.", fr="Un chat."), unit(fr="Un rat."),
        unit(DE="Zwei.", EN_GB="Two.", en="too"), unit(de="Drei."), "<tu></tu>",
    )  # fmt: skip
    assert pairs_of(text, left_out=left_out) == [("A dog.", "Ein Hund."), ("too", "Zwei.")]
    assert left_out == {"unit without de": 1, "unit without en": 1, "unit without en and de": 2}


def test_what_heed_has_translated_is_no_translation_by_people() -> None:
    left_out: Counter[str] = Counter()
    ours = unit(en="A dog.", de="Ein Hund.").replace('<tuv xml:lang="de"', '<tuv creationid="heed" xml:lang="de"')
    assert ours.count("creationid") == 1
    checked = ours.replace('creationid="heed"', 'creationid="heed" changeid="ann"')
    assert pairs_of(memory(ours, checked), left_out=left_out) == [("A dog.", "Ein Hund.")]
    assert left_out == {"unit translated by heed": 1}
    assert "all of its translations were made by heed" in message(memory(ours))


@pytest.mark.parametrize(
    ("language", "tag", "fits"),
    [
        ("en", "en", True), ("en", "EN-us", True), ("EN", "en_GB", True), ("en-US", "en-us", True),
        ("en_us", "en-US", True), ("en-US", "en-GB", False), ("en-US", "en", False), ("en", "eng", True),
        ("e", "en", False), ("zh", "zh-Hans-CN", True), ("eng", "en-GB", True), ("en-US", "eng_us", True),
        ("en-US", "eng", False), ("en-US", "eng-GB", False), ("de", "ger", True), ("de", "eng", False),
        ("xyz", "xy", False),
    ],
)  # fmt: skip
def test_a_language_takes_its_varieties(language: str, tag: str, fits: bool) -> None:
    text = memory(unit(**{tag: "a", "xx": "b"}))
    assert (fits and pairs_of(text, language, "xx")) or message(text, language, "xx").startswith(
        "m.tmx: no unit has both"
    )


def test_the_exact_tag_is_preferred_to_another_of_the_language() -> None:
    text = memory(unit(eng="a", en_US="b", de="c", ger_AT="d"))
    assert pairs_of(text, "en", "de") == [("b", "c")]
    assert pairs_of(text, "eng", "ger") == [("a", "d")]
    assert pairs_of(text, "eng", "en-US") == [("a", "b")]
    assert pairs_of(text, "en", "en-US") == [("a", "b")]


def test_a_memory_next_to_a_table_is_read_by_its_headings() -> None:
    Path("train.tsv").write_text("eng\tdeu\nA dog.\tEin Hund.\n")
    Path("m.tmx").write_text(memory(unit(eng="A cat.", deu="Eine Katze.")))
    files = with_languages_of(CorpusFiles(pairs="train.tsv"), CorpusFiles(pairs="m.tmx"))
    assert list(read_pairs(files)) == [("A cat.", "Eine Katze.")]


def test_a_language_may_be_given_by_name() -> None:
    text = memory(unit(en_US="A dog.", de="Ein Hund."))
    assert pairs_of(text, "English", "Deutsch") == pairs_of(text, "en", "de") == [("A dog.", "Ein Hund.")]
    assert pairs_of(memory(unit(Kanuri="a", en="b")), "Kanuri", "english") == [("a", "b")]
    assert message(text, "French", "German").startswith("m.tmx: no unit has both French and German; its units are in")


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ("Click <bpt i='1'>&lt;b&gt;</bpt>here<ept i='1'>&lt;/b&gt;</ept>.", "Click here."),
        ("Page <ph x='1'>{1}</ph> of <it pos='begin'>\\f</it>9<ut>{}</ut>", "Page  of 9"),
        ("A <hi type='term'>big <hi>red</hi></hi> dog", "A big red dog"),
        ("See<ph>[note: <sub>the first one</sub>]</ph> now", "See the first one now"),
        ("One<ph>[<sub>two</sub>]</ph>three", "One two three"),
        ("Line one<ph>&lt;br/&gt;</ph>Line two", "Line one Line two"),
        (
            "One <it pos='begin'>&lt;w:BR /&gt;</it>two<ut>\\line </ut> three<ph>\t</ph><ph>\\n</ph>four",
            "One two three four",
        ),
        ("One<ph type='lb'/>two<ph type='image'/>three", "One twothree"),
        ("Line <bpt i='1'>&lt;br&gt;</bpt>one<ept i='1'>&lt;br&gt;\n</ept>s<ph>&lt;bridge&gt;</ph>", "Line ones"),
        ("<ph>&lt;br&gt;</ph>Hello<ph>&lt;br&gt;</ph>", "Hello"),
        ("<ph>a<hi>b</hi></ph>c", "c"),
        ("\n    Two\n    lines\r\n  ", "Two lines"),
        ("Tom &amp; Jerry &lt;3 &#228; <![CDATA[<b>]]>", "Tom & Jerry <3 ä <b>"),
        ("a<!-- no --><?x y?>b", "ab"),
        ("", ""),
    ],
)
def test_a_segment_is_what_a_reader_sees(segment: str, text: str) -> None:
    assert pairs_of(memory(unit(en=segment, de="x"))) == [(text, "x")]


def test_both_sides_are_never_the_same_variant() -> None:
    left_out: Counter[str] = Counter()
    text = memory(
        unit(pt_BR="trem"), unit(pt_BR="ônibus", pt_PT="autocarro"), unit(pt="comboio", pt_BR="trem"), unit(pt="mar"),
        unit(pt_PT="ecrã", pt_BR="tela"),
    )  # fmt: skip
    expected = [("autocarro", "ônibus"), ("comboio", "trem"), ("ecrã", "tela")]
    assert pairs_of(text, "pt", "pt-BR", left_out) == expected
    assert left_out == {"unit without pt": 1, "unit without pt-BR": 1}
    assert pairs_of(text, "pt-BR", "pt") == [(tgt, src) for src, tgt in expected]
    assert pairs_of(memory(unit(en="a"), unit(en_US="color", en_GB="colour")), "en", "en") == [("color", "colour")]


@pytest.mark.parametrize("language", ['xml:lang="de"', 'lang="de"', "lang='de' xml:lang=''"])
def test_the_language_is_an_attribute_of_either_name(language: str) -> None:
    text = f"<tmx><body><tu><tuv {language}><seg>Hund</seg></tuv><tuv lang='en'><seg>dog</seg></tuv></tu></body></tmx>"
    assert pairs_of(text) == [("dog", "Hund")]


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("utf-8", ""), ("utf-8", "UTF-8"), ("utf-8-sig", "utf-8"), ("utf-16", "UTF-16"), ("utf-16", ""),
        ("utf-16-le", "utf-16"), ("utf-16-be", "utf-16"), ("utf-8", "utf-16"), ("iso-8859-1", "ISO-8859-1"),
        ("cp1252", "windows-1252"),
    ],
)  # fmt: skip
def test_memories_in_the_encodings_of_translators_tools_are_read(encoding: str, declared: str) -> None:
    text = memory(unit(en="naïve", de="Mädchen"), encoding=declared)
    assert pairs_of(text.encode(encoding)) == [("naïve", "Mädchen")]


def test_a_compressed_memory_is_read_and_a_damaged_one_refused(here: Path) -> None:
    packed = gzip.compress(memory(unit(en="a", de="b")).encode())
    Path("m.tmx.gz").write_bytes(packed)
    files = CorpusFiles(pairs="m.tmx.gz", src_lang="en", tgt_lang="de")
    assert list(read_pairs(files)) == [("a", "b")]
    Path("m.tmx.gz").write_bytes(packed[:-20])
    with pytest.raises(DataError, match=r"m\.tmx\.gz ends unexpectedly"):
        list(read_pairs(files))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", "m.tmx:1: not well-formed XML (no element found). Export the memory again."),
        ("<tmx><body>\n<tu></body>", "m.tmx:2: not well-formed XML (mismatched tag). Export the memory again."),
        ("<html></html>", "m.tmx:1: the file starts with <html>, but a translation memory starts with <tmx>."),
        (memory(), "m.tmx: it has no unit (<tu>) with text. Export the memory again."),
        (
            memory(unit(swe="a", nld="b"), unit(swe="c")),
            "m.tmx: no unit has both en and de; its units are in swe (2), nld (1).",
        ),
        (
            memory(unit(en="a\nb", de="Stra\xdfe")).encode("latin-1"),
            "m.tmx:5: not valid UTF-8 (0xDF). Export the memory again, or pass --errors replace.",
        ),
        (memory(encoding="EBCDIC"), "m.tmx: unsupported encoding ebcdic. Export the memory as UTF-8."),
        (memory(encoding="rot13"), "m.tmx: unsupported encoding rot13. Export the memory as UTF-8."),
        (
            memory(unit(en="a&nbsp;b", de="c")),
            "m.tmx:4: the entity &nbsp; is not defined. Export the memory again.",
        ),
    ],
)
def test_a_malformed_memory_is_refused_with_its_line(data: str | bytes, expected: str) -> None:
    assert message(data) == expected


def test_missing_languages_are_asked_for_with_those_of_all_units() -> None:
    text = memory(*[unit(en_US="a", de="b")] * 4000, unit(en_US="a"))
    assert message(text, "", "de", UsageError) == (
        "m.tmx: its units are in en-US (4,001), de (4,000). "
        "Give the source and the target, such as --src-lang en --tgt-lang de."
    )


def test_equally_frequent_languages_are_listed_by_name() -> None:
    text = memory(unit(sv="a", de="b", fi="c", en="d", nl="e", da="f"), unit(nl="g"))
    listed = "nl (2), da (1), de (1), en (1), fi (1), sv (1)"
    assert message(text, "", "", UsageError).startswith(f"m.tmx: its units are in {listed}. Give")


def test_errors_replace_replaces_bytes_that_are_not_utf_8() -> None:
    data = memory(unit(en="a", de="Stra\xdfe")).encode("latin-1")
    assert pairs_of(data, errors="replace") == [("a", "Stra\ufffde")]


FORBIDDEN = [("&#x1F;", "reference &#x1F;"), ("&#0;", "reference &#0;"), ("&#xFFFF;", "reference &#xFFFF;"),
             ("&#1114112;", "reference &#1114112;"), ("\x1f", "character U+001F"), ("\0", "character U+0000"),
             ("\uffff", "character U+FFFF")]  # fmt: skip


@pytest.mark.parametrize(("forbidden", "words"), FORBIDDEN)
@pytest.mark.parametrize("place", ["<seg>", '<prop type="x'])
def test_characters_that_xml_forbids_are_named_or_replaced(forbidden: str, words: str, place: str) -> None:
    text = memory(unit(en="ä &amp; &#228;&#xe4;", de="ö"), unit(en="c", de="d").replace(place, place + forbidden, 1))
    assert message(text) == (
        f"m.tmx:5: XML does not allow the {words}. Export the memory again, or pass --errors replace."
    )
    assert pairs_of(text, errors="replace") == [("ä & ää", "ö"), ("\ufffdc" if place == "<seg>" else "c", "d")]


@pytest.mark.parametrize(("forbidden", "words"), FORBIDDEN)
def test_characters_that_xml_forbids_are_seen_across_blocks(
    forbidden: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = memory(unit(en=f"a &amp; b{forbidden}c &#228;", de="d & e".replace("&", "&amp;")))
    at = text.encode().index(forbidden.encode())
    for size in range(at - 2, at + len(forbidden) + 4):
        monkeypatch.setattr(tmx, "_BLOCK", size)
        assert pairs_of(text, errors="replace") == [("a & b\ufffdc ä", "d & e")]
        assert f"m.tmx:4: XML does not allow the {words}." in message(text)


def test_other_errors_are_not_blamed_on_forbidden_characters() -> None:
    assert message(memory(unit(en="a < b \x1f", de="c"))) == (
        "m.tmx:4: not well-formed XML (not well-formed (invalid token)). Export the memory again."
    )


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
        '<!DOCTYPE tmx [<!ENTITY a SYSTEM "secret.txt">]>',
        '<!DOCTYPE tmx [<!ENTITY % a SYSTEM "secret.dtd"> %a;]>',
    ],
)
def test_a_memory_can_neither_grow_without_end_nor_read_other_files(doctype: str) -> None:
    Path("secret.txt").write_text("secret")
    Path("secret.dtd").write_text('<!ENTITY b "secret">')
    text = f"<?xml version='1.0'?>{doctype}<tmx><body>{unit(en='&b;', de='x')}</body></tmx>"
    assert message(text) == (
        "m.tmx:1: the file declares the entity a, which heed does not expand. Export the memory again."
    )


def test_a_document_type_that_declares_no_entity_is_read() -> None:
    text = f"<!DOCTYPE tmx [<!ELEMENT tmx ANY>]><tmx><body>{unit(en='a', de='b')}</body></tmx>"
    assert pairs_of(text) == [("a", "b")]


def test_a_memory_is_streamed(here: Path) -> None:
    """Units come before a later error in the file is reached, and memory does not grow with the file."""
    Path("m.tmx").write_text(HEAD.format("") + unit(en="a", de="b") * 12_000 + "<oops")
    tracemalloc.start()
    units = read_units("m.tmx")
    count = sum(1 for _ in (next(units) for _ in range(10_000)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 10_000
    assert peak < 1_200_000
    assert Path("m.tmx").stat().st_size > 1_400_000
