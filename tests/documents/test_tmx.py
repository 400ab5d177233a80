"""Translation memories: missing translations are filled in, and everything else stays as it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from to_itself import to_itself

from heed.core.errors import DataError, UsageError
from heed.documents import tmx
from heed.documents.file_format import FileContext
from heed.documents.inline_tags import insert_tags
from heed.documents.spans import Part, Span, escape
from heed.documents.translation import Translation
from heed.text.readers import read_pairs
from heed.text.readers.columns import Sides
from heed.text.readers.corpus import CorpusFiles

EN_DE = Sides("en", "de")


def completed(text: str, name: str, sides: Sides, translator: Any) -> str:
    return tmx.translate_tmx(text, translator, FileContext(name, sides))


class Loud:
    """Translates each text into capitals, its words linked one by one."""

    def checked(self, items: Iterable[Any]) -> Iterator[Any]:
        return iter(items)

    def documents(self, documents: Sequence[Sequence[Part]]) -> list[Translation]:
        return [Translation("".join(map(_loud, parts))) for parts in documents]


loud = Loud()


def _loud(part: Part) -> str:
    if isinstance(part, str):
        return part
    links = [(number, number) for number in range(len(part.plain.split()))]
    return insert_tags(part.tags, part.plain, part.plain.upper(), links, escape)


def memory(*units: str) -> str:
    return f'<?xml version="1.0"?>\n<tmx version="1.4"><header/><body>\n{"".join(units)}</body></tmx>\n'


def unit(*variants: str) -> str:
    return "".join(["  <tu>\n", *(f"    {variant}\n" for variant in variants), "  </tu>\n"])


DOG = '<tuv xml:lang="en-US"><seg>A dog &amp; more</seg></tuv>'
HUND = '<tuv xml:lang="de-DE"><seg>Ein Hund</seg></tuv>'
NEW = '<tuv xml:lang="{}" creationid="heed"><seg>A DOG &amp; MORE</seg></tuv>'


def test_a_unit_without_the_target_gets_a_new_variant() -> None:
    done = completed(memory(unit(DOG), unit(DOG, HUND)), "m.tmx", EN_DE, loud)
    assert done == memory(unit(DOG, NEW.format("de-DE")), unit(DOG, HUND))


def test_formatting_codes_move_with_their_words() -> None:
    image = '<ph x="2">&lt;img alt="<sub>a cat</sub>"/></ph>'
    codes = f'<seg>A <bpt i="1">{{b}}</bpt>dog<ept i="1">{{/b}}</ept> &amp; {image} more</seg>'
    english = f'<tuv xml:lang="en">{codes}</tuv>'
    loud_codes = codes.replace("dog", "DOG").replace(" more", " MORE")
    new = f'<tuv xml:lang="de" creationid="heed">{loud_codes}</tuv>'
    assert completed(memory(unit(english)), "m.tmx", EN_DE, loud) == memory(unit(english, new))


def test_a_unit_with_text_only_in_codes_is_unchanged() -> None:
    note = '<tuv xml:lang="en"><seg><ph><sub>Only a note</sub></ph></seg></tuv>'
    assert completed(memory(unit(note)), "m.tmx", EN_DE, loud) == memory(unit(note))


def test_a_target_language_new_to_the_memory_gets_the_tag_of_the_model() -> None:
    assert completed(memory(unit(DOG)), "m.tmx", EN_DE, loud) == memory(unit(DOG, NEW.format("de")))


@pytest.mark.parametrize("empty", ["<seg/>", "<seg></seg>", "<seg> </seg>", '<seg><ph x="1"/></seg>'])
def test_an_empty_segment_is_filled(empty: str) -> None:
    there = f'<tuv xml:lang="de-DE" creationid="me">{empty}<!-- > --></tuv>'
    filled = there.replace(empty, "<seg>A DOG &amp; MORE</seg>").replace('"me"', '"me" changeid="heed"')
    assert completed(memory(unit(there, DOG)), "m.tmx", EN_DE, loud) == memory(unit(filled, DOG))


def test_an_earlier_changeid_is_replaced() -> None:
    there = "<tuv xml:lang='de' changeid='me' note='>'><seg/></tuv>"
    filled = """<tuv xml:lang='de' changeid="heed" note='>'><seg>A DOG &amp; MORE</seg></tuv>"""
    assert completed(memory(unit(DOG, there)), "m.tmx", EN_DE, loud) == memory(unit(DOG, filled))


def test_varieties_with_text_come_before_empty_ones() -> None:
    no_english, british = '<tuv xml:lang="en-US"><seg/></tuv>', '<tuv xml:lang="en-GB"><seg>a dog</seg></tuv>'
    austrian = '<tuv xml:lang="de-AT"><seg>Hund</seg></tuv>'
    new = '<tuv xml:lang="de" creationid="heed"><seg>A DOG</seg></tuv>'
    assert completed(memory(unit(no_english, british)), "m.tmx", EN_DE, loud) == memory(unit(no_english, british, new))
    done = memory(unit(british, '<tuv xml:lang="de-DE"><seg/></tuv>', austrian))
    assert completed(done, "m.tmx", EN_DE, loud) == done


def test_the_target_gets_the_tag_that_the_memory_uses_and_never_that_of_the_source() -> None:
    english, german = '<tuv xml:lang="eng"><seg>a</seg></tuv>', '<tuv xml:lang="ger"><seg>b</seg></tuv>'
    done = completed(memory(unit(english), unit(english, german)), "m.tmx", EN_DE, loud)
    assert '<tuv xml:lang="ger" creationid="heed"><seg>A</seg></tuv>' in done
    brazilian = '<tuv xml:lang="pt-BR"><seg>a</seg></tuv>'
    done = completed(memory(unit(brazilian)), "m.tmx", Sides("pt-BR", "pt"), loud)
    assert '<tuv xml:lang="pt" creationid="heed"><seg>A</seg></tuv>' in done


@pytest.mark.parametrize("attribute", ['note="x/>y"', "note='<\">'", 'note="</seg>"'.replace("<", "&lt;")])
def test_attributes_may_contain_ends_of_tags(attribute: str) -> None:
    dog = f'<tuv xml:lang="en" {attribute}><seg>a dog</seg></tuv>'
    if "'<" in attribute:
        dog = dog.replace('<"', '&lt;"')
    new = '<tuv xml:lang="de" creationid="heed"><seg>A DOG</seg></tuv>'
    assert completed(memory(unit(dog)), "m.tmx", EN_DE, loud) == memory(unit(dog, new))
    empty = f'<tuv xml:lang="de" {attribute.replace("<", "&lt;")}><seg></seg></tuv>'
    filled = empty.replace("><seg></seg>", ' changeid="heed"><seg>A DOG</seg>')
    plain = '<tuv xml:lang="en"><seg>a dog</seg></tuv>'
    assert completed(memory(unit(empty, plain)), "m.tmx", EN_DE, loud) == memory(unit(filled, plain))


def test_an_attribute_that_quotes_another_is_left_alone() -> None:
    there = """<tuv xml:lang="de" note=" changeid='x'"><seg></seg></tuv>"""
    filled = """<tuv xml:lang="de" note=" changeid='x'" changeid="heed"><seg>A DOG &amp; MORE</seg></tuv>"""
    assert completed(memory(unit(DOG, there)), "m.tmx", EN_DE, loud) == memory(unit(DOG, filled))


def test_the_source_is_never_filled_as_a_variety_of_the_target() -> None:
    full, empty = '<tuv xml:lang="pt-BR"><seg>a</seg></tuv>', '<tuv xml:lang="pt-BR"><seg/></tuv>'
    new = '<tuv xml:lang="pt" creationid="heed"><seg>A</seg></tuv>'
    done = completed(memory(unit(empty), unit(full, empty)), "m.tmx", Sides("pt-BR", "pt"), loud)
    assert done == memory(unit(empty), unit(full, empty, new))


def test_a_new_variant_uses_the_standard_attribute_for_its_language() -> None:
    both = '<tuv lang="EN" xml:lang="EN-US"><seg>a</seg></tuv>'
    new = '<tuv xml:lang="de" creationid="heed"><seg>A</seg></tuv>'
    assert completed(memory(unit(both)), "m.tmx", EN_DE, loud) == memory(unit(both, new))


def test_a_segment_outside_a_variant_is_unchanged() -> None:
    text = memory(unit(DOG, HUND), "<tu><seg>bare</seg></tu>")
    assert completed(text, "m.tmx", EN_DE, loud) == text


def test_units_of_other_languages_and_empty_sources_are_unchanged() -> None:
    french = '<tuv xml:lang="fr"><seg>Un chien</seg></tuv>'
    text = memory(unit(french), unit('<tuv xml:lang="en"><seg> </seg></tuv>'), unit(french, HUND), "<tu></tu>")
    assert completed(text, "m.tmx", EN_DE, loud) == text


def test_the_attribute_of_old_memories_is_kept() -> None:
    old = '<tuv lang="EN"><seg>A cat</seg></tuv>'
    done = completed(memory(unit(old)), "m.tmx", EN_DE, loud)
    assert done == memory(unit(old, '<tuv lang="de" creationid="heed"><seg>A CAT</seg></tuv>'))


def test_positions_count_bytes_and_not_characters() -> None:
    text = memory("<!-- äöü 🙂 -->", unit('<tuv xml:lang="en"><seg>é 🙂</seg></tuv>'), unit(DOG))
    done = completed(text, "m.tmx", EN_DE, loud)
    assert "<seg>É 🙂</seg></tuv>\n  </tu>" in done
    assert done.count("creationid") == 2


def test_the_output_is_read_as_pairs(tmp_path: Path) -> None:
    path = tmp_path / "m.tmx"
    done = completed(memory(unit(DOG), unit(DOG, HUND)), "m.tmx", EN_DE, loud)
    files = CorpusFiles(pairs=path, src_lang="en", tgt_lang="de")
    path.write_text(done, encoding="utf-8")
    assert list(read_pairs(files)) == [("A dog & more", "Ein Hund")]  # the other one has not been checked
    path.write_text(done.replace('creationid="heed"', 'creationid="heed" changeid="ann"'), encoding="utf-8")
    assert list(read_pairs(files)) == [("A dog & more", "A DOG & MORE"), ("A dog & more", "Ein Hund")]


def test_a_memory_of_other_languages_is_refused_with_those_it_has() -> None:
    with pytest.raises(DataError, match="no unit has fr; its units are in en-US, de-DE"):
        completed(memory(unit(DOG, HUND)), "m.tmx", Sides("fr", "de"), loud)
    with pytest.raises(UsageError, match=r"does not name its languages.* --data\.src_lang=L"):
        completed(memory(unit(DOG, HUND)), "m.tmx", Sides("", "de"), loud)


# Segments

PIECES = [
    "A dog", "  ", " runs.", "\n", "&amp; ", "x", '<bpt i="1" x="1">{b}</bpt>', '<ept i="1">{/b}</ept>',
    '<bpt i="2"/>', '<ept i="2"/>', "<hi>", "</hi>", '<hi type=">"/>', "<ph>&lt;1/></ph>", '<ph type="lb"/>',
    "<ph>\\n</ph>", '<ph>a <sub>text</sub> b</ph>', "<it pos='begin'>{i}</it>", "<ut>x</ut>",
]  # fmt: skip


def parsed(inside: str) -> list[Part]:
    return tmx.parse_segment(f"<seg>{inside}</seg>".encode())


def texts(inside: str) -> list[str]:
    """The texts to translate."""
    return [part.plain for part in parsed(inside) if isinstance(part, Span)]


def kinds(inside: str) -> list[str]:
    """The kinds of all tags."""
    return [tag.kind for part in parsed(inside) if isinstance(part, Span) for tag in part.tags]


def unchanged(inside: str) -> str:
    """The segment, each sentence translated to itself."""
    return to_itself(parsed(inside))


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("A <bpt i='1'>{b}</bpt>dog<ept i='1'>{/b}</ept>.", ["A dog."]),
        ("one<ph>&lt;br/></ph>two", ["one", "two"]),
        ("one<ph type='lb'/>two", ["one", "two"]),
        ("one<ph type='image'/>two", ["onetwo"]),
        ("one<bpt>&lt;br/></bpt>two", ["onetwo"]),  # begins formatting, whatever it is called
        ("one <ph>a <sub>note\n</sub></ph>two", ["one two"]),
        ("<![CDATA[a < b]]> &amp; <!-- c -->d", ["a < b & d"]),
        (" <hi>é</hi>  🙂\n", ["é 🙂"]),
        ("", []),
        (" ", []),
        ("<ph/>", [""]),
    ],
)
def test_the_visible_text_outside_codes_is_translated(inside: str, expected: list[str]) -> None:
    assert texts(inside) == expected


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ('<bpt i="1"/>a<ept i="1"/>', ["open", "close"]),
        ('<bpt i="1"/><bpt i="2"/>a<ept i="1"/>b<ept i="2"/>', ["open", "open", "close", "close"]),
        ('<ept i="1"/>a<bpt i="1"/>', ["single", "single"]),
        ('<bpt i="1"/>a<bpt i="1"/>b<ept i="1"/>', ["single", "open", "close"]),
        ('a<bpt i="1"/>b', ["single"]),
        ("<hi>a<hi/></hi>", ["open", "single", "close"]),
        ("<bpt>x</bpt>a<ept>y</ept>", ["open", "close"]),  # of versions before 1.3
    ],
)
def test_codes_that_belong_together_are_pairs(inside: str, expected: list[str]) -> None:
    assert kinds(inside) == expected


def test_a_pair_may_span_a_line_break() -> None:
    inside = '<bpt i="1"/>one<ph type="lb"/>two<ept i="1"/>'
    assert kinds(inside) == ["open", "close"]
    assert unchanged(inside) == inside


def test_a_pair_of_codes_encloses_the_translation_of_its_words() -> None:
    (span,) = [part for part in parsed('a <bpt i="1">&lt;b></bpt>red<ept i="1">&lt;/b></ept> dog') if part]
    assert isinstance(span, Span)
    links = [(0, 0), (1, 2), (2, 1)]
    written = insert_tags(span.tags, span.plain, "un chien rouge", links, escape)
    assert written == 'un chien <bpt i="1">&lt;b></bpt>rouge<ept i="1">&lt;/b></ept>'


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_no_code_is_lost_or_changed(pieces: list[str]) -> None:
    depth, inside = 0, ""
    for piece in pieces:
        depth += (piece == "<hi>") - (piece == "</hi>")
        inside += piece if depth >= 0 else ""
        depth = max(depth, 0)
    inside += "</hi>" * depth
    codes = [piece for piece in PIECES if piece.startswith("<")]
    assert {code: unchanged(inside).count(code) for code in codes} == {code: inside.count(code) for code in codes}


@given(st.lists(st.sampled_from(PIECES[:6]), max_size=8))
def test_text_without_codes_is_one_span(pieces: list[str]) -> None:
    assert len(texts("".join(pieces))) <= 1
