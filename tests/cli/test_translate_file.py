"""Tests of `heed translate-file`: formats are kept, and what is not supported is refused."""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path

import pytest
from command import call
from toy import tiny_keys

import heed

SOURCES = ["ba ce", "di fo gu", "ha ba"]


@pytest.fixture
def expected(translator: Path) -> list[str]:
    """The translations of the sources."""
    return call("translate", translator, stdin="\n".join(SOURCES)).lines


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three rows, the second of which is done."""
    path = tmp_path / "table.csv"
    path.write_bytes(f"id;source;target\r\n1;{SOURCES[0]};\r\n2;{SOURCES[1]};done\r\n3;{SOURCES[2]};\r\n".encode())
    return path


def test_a_table_goes_to_stdout_or_a_file(translator: Path, table: Path, expected: list[str], tmp_path: Path) -> None:
    whole = f"id;source;target\r\n1;ba ce;{expected[0]}\r\n2;di fo gu;done\r\n3;ha ba;{expected[2]}\r\n"
    assert call("translate-file", translator, table, "-q").out.encode() == whole.encode()
    out = tmp_path / "out.csv"
    result = call("translate-file", translator, table, "--out", out)
    assert result.code == 0
    assert result.out == ""
    assert "column 2 (source) into column 3 (target): 2 of 3 rows" in result.err
    assert "2/2 sentences" in result.err
    assert out.read_bytes() == whole.encode()


def test_columns_search_options_and_terms_apply(translator: Path, table: Path) -> None:
    columns = ("--src-column", "2", "--tgt-column", "new")
    search = ("--beam", "3", "--keep", "gu", "--decoding.guard=false")
    header, *rows = call("translate-file", translator, table, *columns, *search, "-q").out.split("\r\n")
    assert header == "id;source;target;new"
    assert "gu" in rows[1].split(";")[3].split()


def test_a_model_that_is_not_usable_yet_is_named(tmp_path: Path) -> None:
    run, text = tmp_path / "run", tmp_path / "a.txt"
    text.write_text("ba ce\n", encoding="utf-8")
    heed.train(tiny_keys(tmp_path, training__max_steps=1), run, device="cpu", quiet=True)
    for result in (call("translate-file", run, text), call("translate", run, stdin="ba ce\n")):
        assert result.code == 0 and re.search(r"run: BLEU \d\.\d on validation: not usable yet", result.err), result.err
    assert "not usable" not in call("translate-file", run, text, "-q").err


def test_an_archive_is_unpacked_and_the_output_packed(translator: Path, expected: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(f"{SOURCES[0]}\n\n  {SOURCES[1]}\n".encode()))
    translated = f"{expected[0]}\n\n  {expected[1]}\n"
    assert call("translate-file", translator, path, "-q").out == translated
    call("translate-file", translator, path, "--out", tmp_path / "b.txt.gz", "-q")
    assert gzip.decompress((tmp_path / "b.txt.gz").read_bytes()).decode() == translated


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "expected a run and a file"),
        (["missing.csv"], 66, "missing.csv does not exist"),
        (["a.pdf"], 2, "pdftotext to .txt, and use that file. Supported formats: .txt"),
        (["table.csv", "--src-column", "text"], 65, "no column 'text'"),
        (["table.csv", "--src-column", "0"], 2, "columns are counted from 1"),
        (["table.csv", "--out", "missing/a.csv"], 2, "name a file in an existing folder"),
        (["table.csv", "--out", "./table.csv"], 2, "is the file to translate"),
        (["table.csv", "--keep", "gu", "--decoding.diversity=1"], 2, "diversity"),
        (["table.csv", "--decoding.nothing=1"], 2, "nothing"),
        (["table.csv", "--decoding.nbest=2"], 2, "leave out --decoding.nbest"),
        (["a.html", "--src-column", "2"], 2, "are for .csv and .tsv"),
        (["table.csv", "--nothing"], 2, "unknown option --nothing"),
    ],
)
def test_wrong_calls_are_refused(
    translator: Path, table: Path, words: list[str], code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(table.parent)
    result = call("translate-file", translator, *words)
    assert result.code == code
    assert says in result.err
    assert result.out == ""


def test_a_file_given_to_translate_is_referred_to_translate_file(translator: Path, table: Path) -> None:
    assert "translate the whole file with heed translate-file" in call("translate", translator, table).err


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def test_an_office_document_is_not_written_to_a_terminal(translator: Path, tmp_path: Path) -> None:
    result = call("translate-file", translator, tmp_path / "letter.docx", stdout=Terminal(io.BytesIO()))
    assert (result.code, "name the translated file with --out" in result.err) == (2, True)
