"""Do the units of a translation memory get what they lack, and stays everything else as it is written?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from heed.core.errors import DataError, UsageError
from heed.documents.memories import translate_tmx
from heed.documents.tables import Sides
from heed.text.readers.corpus import CorpusFiles
from heed.text.readers.pairs import read_pairs

EN_DE = Sides("en", "de")


def loud(texts: Sequence[str]) -> list[str]:
    return [text.upper() for text in texts]


def memory(*units: str) -> str:
    return f'<?xml version="1.0"?>\n<tmx version="1.4"><header/><body>\n{"".join(units)}</body></tmx>\n'


def unit(*variants: str) -> str:
    return "".join(["  <tu>\n", *(f"    {variant}\n" for variant in variants), "  </tu>\n"])


DOG = '<tuv xml:lang="en-US"><seg>A dog &amp; <bpt i="1">{b}</bpt>more</seg></tuv>'
HUND = '<tuv xml:lang="de-DE"><seg>Ein Hund</seg></tuv>'
NEW = '<tuv xml:lang="{}" creationid="heed"><seg>A DOG &amp; MORE</seg></tuv>'


def test_a_unit_without_the_target_gets_it_beside_its_others() -> None:
    done = translate_tmx(memory(unit(DOG), unit(DOG, HUND)), "m.tmx", EN_DE, loud)
    assert done == memory(unit(DOG, NEW.format("de-DE")), unit(DOG, HUND))


def test_where_the_memory_has_no_such_language_the_model_names_it() -> None:
    assert translate_tmx(memory(unit(DOG)), "m.tmx", EN_DE, loud) == memory(unit(DOG, NEW.format("de")))


@pytest.mark.parametrize("empty", ["<seg/>", "<seg></seg>", "<seg> </seg>", '<seg><ph x="1"/></seg>'])
def test_an_empty_segment_is_filled(empty: str) -> None:
    there = f'<tuv xml:lang="de-DE" creationid="me">{empty}<!-- > --></tuv>'
    filled = there.replace(empty, "<seg>A DOG &amp; MORE</seg>")
    assert translate_tmx(memory(unit(there, DOG)), "m.tmx", EN_DE, loud) == memory(unit(filled, DOG))


def test_units_of_other_languages_and_empty_sources_stay() -> None:
    french = '<tuv xml:lang="fr"><seg>Un chien</seg></tuv>'
    text = memory(unit(french), unit('<tuv xml:lang="en"><seg> </seg></tuv>'), unit(french, HUND), "<tu></tu>")
    assert translate_tmx(text, "m.tmx", EN_DE, loud) == text


def test_the_attribute_of_old_memories_is_kept() -> None:
    old = '<tuv lang="EN"><seg>A cat</seg></tuv>'
    done = translate_tmx(memory(unit(old)), "m.tmx", EN_DE, loud)
    assert done == memory(unit(old, '<tuv lang="de" creationid="heed"><seg>A CAT</seg></tuv>'))


def test_places_are_those_of_bytes_not_of_letters() -> None:
    text = memory("<!-- äöü 🙂 -->", unit('<tuv xml:lang="en"><seg>é 🙂</seg></tuv>'), unit(DOG))
    done = translate_tmx(text, "m.tmx", EN_DE, loud)
    assert "<seg>É 🙂</seg></tuv>\n  </tu>" in done
    assert done.count("creationid") == 2


def test_what_comes_out_is_read_as_pairs(tmp_path: Path) -> None:
    path = tmp_path / "m.tmx"
    path.write_text(translate_tmx(memory(unit(DOG), unit(DOG, HUND)), "m.tmx", EN_DE, loud), encoding="utf-8")
    files = CorpusFiles(pairs=path, src_lang="en", tgt_lang="de")
    assert list(read_pairs(files)) == [("A dog & more", "A DOG & MORE"), ("A dog & more", "Ein Hund")]


def test_a_memory_of_other_languages_is_refused_with_those_it_has() -> None:
    with pytest.raises(DataError, match="no unit has fr; its languages are en-US, de-DE"):
        translate_tmx(memory(unit(DOG, HUND)), "m.tmx", Sides("fr", "de"), loud)
    with pytest.raises(UsageError, match="does not say its languages"):
        translate_tmx(memory(unit(DOG, HUND)), "m.tmx", Sides("", "de"), loud)
