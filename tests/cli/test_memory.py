"""`heed memory`: translations by people go in, are reviewed, are found, and come out for other programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import call

from heed.memory.store import TranslationMemory
from heed.text.readers import CorpusFiles, read_pairs

PAIRS = [
    ("Press the green button.", "Drücken Sie den grünen Knopf."),
    ("Press the red button.", "Drücken Sie den roten Knopf."),
    ("Press the red button.", "Roten Knopf drücken & halten."),
    ("Close the door.", "Kaufen Sie auf https://spam.example billig ein!"),
    ("Open the door slowly.", "Open the door slowly."),
]
LANGUAGES = ("--src-lang", "en", "--tgt-lang", "de")


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    table = tmp_path / "old.tsv"
    table.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS))
    result = call("memory", "import", tmp_path / "team.memory", table, *LANGUAGES)
    assert result.code == 0, result.err
    assert "5 of 5 translations are new; it has 5" in result.err
    return tmp_path / "team.memory"


def test_what_looks_wrong_is_shown_with_the_reasons_and_the_rest_can_be_approved(memory: Path) -> None:
    result = call("memory", "review", memory, "--approve-rest")
    lines = [line.split("\t") for line in result.out.splitlines()]
    assert [(line[0], line[1]) for line in lines] == [
        ("2", "1 other translation of the same source"), ("3", "1 other translation of the same source"),
        ("4", "an address that the source does not have"), ("5", "copy"),
    ]  # fmt: skip
    assert lines[0][2:] == list(PAIRS[1])
    assert "5 translations, 4 of them not reviewed" in result.err
    result = call("memory", "review", memory, "--reject", 3, "--reject", 4, "--approve", 5, "--approve-rest")
    assert (result.out, "3 translations, 0 of them not reviewed" in result.err) == ("", True)
    states = {unit.id: unit.state for unit in TranslationMemory(memory).units()}
    assert states == {1: "approved", 2: "approved", 3: "rejected", 4: "rejected", 5: "approved"}


@pytest.mark.parametrize("suffix", [".tmx", ".tsv", ".tmx.gz", ".tsv.xz"])
def test_exported_translations_are_read_as_they_were(memory: Path, tmp_path: Path, suffix: str) -> None:
    assert call("memory", "review", memory, "--reject", 4).code == 0
    out = tmp_path / f"out{suffix}"
    assert call("memory", "export", memory, "--out", out).code == 0
    kept = [pair for pair in PAIRS if "spam" not in pair[1]]
    assert list(read_pairs(CorpusFiles(pairs=out, src_lang="en", tgt_lang="de"))) == kept
    assert call("memory", "import", tmp_path / "again.memory", out, *LANGUAGES, "--approved").code == 0
    assert [(unit.source, unit.target) for unit in TranslationMemory(tmp_path / "again.memory").units()] == kept


def test_pairs_with_an_empty_side_are_left_out(tmp_path: Path) -> None:
    table = tmp_path / "some.tsv"
    table.write_text("A dog.\tEin Hund.\nA cat.\t\n\tEine Katze.\n")
    result = call("memory", "import", tmp_path / "a.memory", table, *LANGUAGES)
    assert "left out: 2 units with an empty side" in result.err
    assert "1 of 1 translations are new" in result.err


def test_fields_of_records_are_found_by_the_languages(tmp_path: Path) -> None:
    records = tmp_path / "some.jsonl"
    records.write_text('{"de": "Ein Hund.", "en": "A dog."}\n{"de": "Eine Katze.", "en": "A cat."}\n')
    result = call("memory", "import", tmp_path / "a.memory", records, *LANGUAGES)
    assert result.code == 0, result.err
    units = TranslationMemory(tmp_path / "a.memory").units()
    assert [(unit.source, unit.target) for unit in units] == [("A dog.", "Ein Hund."), ("A cat.", "Eine Katze.")]


def test_a_source_is_found_exactly_and_nearly(memory: Path) -> None:
    result = call("memory", "find", memory, "Press the green button.")
    similarities, sources, _ = zip(*(line.split("\t") for line in result.out.splitlines()), strict=True)
    assert sources == (PAIRS[0][0], PAIRS[1][0], PAIRS[1][0])
    assert similarities[0] == "1.00" and 0.7 < float(similarities[1]) < 1


def test_corrections_within_one_language_do_not_look_wrong(tmp_path: Path) -> None:
    memory = tmp_path / "team.memory"
    units = [("The man are walking his dog.", "The man is walking his dog.", ""), ("He walks.", "He walks.", "")]
    TranslationMemory(memory, ("en-GB", "en-US"), create=True).add(units)
    assert call("memory", "review", memory).out == ""


def test_tabs_and_line_breaks_in_a_unit_make_no_other_columns_and_lines(tmp_path: Path) -> None:
    memory, out = tmp_path / "team.memory", tmp_path / "out.tsv"
    TranslationMemory(memory, ("en", "de"), create=True).add([("Press\tthe button.", "Knopf:\ndrücken\t!" * 20, "")])
    source, target = "Press the button.", "Knopf: drücken !" * 20
    assert call("memory", "export", memory, "--out", out).code == 0
    assert list(read_pairs(CorpusFiles(pairs=out, src_lang="en", tgt_lang="de"))) == [(source, target)]
    assert call("memory", "review", memory).out.rstrip("\n").split("\t")[2:] == [source, target]
    assert call("memory", "find", memory, "Press\tthe button.").out == f"1.00\t{source}\t{target}\n"


def test_a_memory_without_languages_is_exported_as_tsv_alone(tmp_path: Path) -> None:
    memory, out = tmp_path / "team.memory", tmp_path / "out.tmx"
    TranslationMemory(memory, ("", ""), create=True).add([("A dog.", "Ein Hund.", "")])
    result = call("memory", "export", memory, "--out", out)
    assert (result.code, "write a .tsv file" in result.err, out.exists()) == (2, True, False), result.err
    assert call("memory", "export", memory, "--out", tmp_path / "out.tsv").code == 0


def test_mistakes_are_refused(memory: Path, tmp_path: Path) -> None:
    result = call("memory", "review", memory, "--approve", 1, "--approve", 1, "--reject", 2, "--reject", 99)
    assert (result.code, "has no unit with the id 99: nothing was changed" in result.err) == (2, True)
    result = call("memory", "review", memory, "--approve", 1, "--reject", 1)
    assert (result.code, "--approve 1 and --reject 1 contradict each other" in result.err) == (2, True)
    assert {unit.state for unit in TranslationMemory(memory).units()} == {"new"}
    result = call("memory", "export", memory, "--out", tmp_path / "out.docx")
    assert (result.code, "a .tmx or a .tsv file" in result.err) == (2, True)
    result = call("memory", "find", memory, "x", "--src-lang", "en")
    assert (result.code, "give both --src-lang and --tgt-lang" in result.err) == (2, True)
    assert call("memory", "find", tmp_path / "none", "x").code == 66
    result = call("memory", "export", memory, "--out", tmp_path / "none" / "out.tsv")
    assert (result.code, "name a file in an existing folder" in result.err) == (2, True)
    result = call("memory", "find", memory, "caf\udce9")
    assert (result.code, "is not valid UTF-8" in result.err) == (65, True)


@pytest.mark.parametrize("words", [("review",), ("find", "x"), ("export", "--out", "out.tsv")])
def test_an_empty_file_is_no_memory_and_stays_empty(words: tuple[str, ...], tmp_path: Path) -> None:
    (empty := tmp_path / "empty").touch()
    verb, *rest = words
    result = call("memory", verb, empty, *rest, *LANGUAGES)
    assert (result.code, "is empty, not a translation memory" in result.err) == (65, True)
    assert empty.read_bytes() == b""
    (table := tmp_path / "a.tsv").write_text("A dog.\tEin Hund.\n")
    assert call("memory", "import", empty, table, *LANGUAGES).code == 0
