"""Tests of `heed tokenizer`: text survives `encode | decode`."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import call
from toy import pairs, write_lines

TEXT = "ba ce  di\n\n fo\tgu \n日本 🙂\n12 34\n"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "text", [side for pair in pairs(100) for side in pair] + TEXT.split("\n"))


@pytest.mark.parametrize("ids", [(), ("--ids",)], ids=["pieces", "ids"])
@pytest.mark.parametrize("kind", ["bpe", "unigram", "byte"])
def test_lossless_kinds_give_every_line_back(corpus: Path, tmp_path: Path, kind: str, ids: tuple[str, ...]) -> None:
    out = tmp_path / "tokenizer.json"
    trained = call("tokenizer", "train", corpus, "--kind", kind, "--vocab-size", "300", "--out", out)
    assert (trained.code, trained.stdout) == (0, b"")
    assert trained.err.startswith(f"{out}: ")
    encoded = call("tokenizer", "encode", out, *ids, stdin=TEXT)
    assert len(encoded.lines) == 5
    assert all(word.isdecimal() for word in encoded.out.split()) == bool(ids)
    assert call("tokenizer", "decode", out, *ids, stdin=encoded.stdout).out == TEXT


def test_pieces_of_spaces_and_digits_are_restored(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "tokenizer.json"
    call("tokenizer", "train", corpus, corpus, "--kind", "character", "--vocab-size", "300", "--out", out)
    encoded = call("tokenizer", "encode", out, stdin="ba ce\n12 34\n")
    assert encoded.lines == ["b a ▁ c e", "1 2 ▁ 3 4"]
    assert call("tokenizer", "decode", out, stdin=encoded.stdout).out == "ba ce\n12 34\n"


def test_numbers_that_are_not_ids_are_skipped_and_invalid_utf8_is_replaced_on_request(translator: Path) -> None:
    found = call("tokenizer", "decode", translator, "--ids", stdin=f"{'9' * 5000} 99999 1\n\n")
    assert (found.code, found.out) == (0, "\n\n")
    for verb in ("encode", "decode"):
        assert call("tokenizer", verb, translator, stdin=b"ba\xff\n").code == 65
        assert call("tokenizer", verb, translator, "--errors", "replace", stdin=b"ba\xff\n").code == 0


def test_a_run_folder_names_its_tokenizer(translator: Path) -> None:
    encoded = call("tokenizer", "encode", translator, stdin="ba ce\n")
    assert call("tokenizer", "decode", translator, stdin=encoded.stdout).out == "ba ce\n"


@pytest.mark.parametrize(
    ("words", "stdin", "code", "message"),
    [
        (("train", "nowhere", "--out", "t.json"), b"", 66, "nowhere does not exist"),
        (("train", "text", "--kind", "bpee", "--out", "t.json"), b"", 2, "kind: expected one of 'bpe'"),
        (("train", "text", "--vocab-size", "9", "--out", "t.json"), b"", 2, "vocab_size = 9 is too small"),
        (
            ("train", "text", "--vocab-size", "300", "--out", "no/t.json"),
            b"",
            2,
            "--out no/t.json: name a file in an existing folder",
        ),
        (("encode", "nowhere.json"), b"", 66, "nowhere.json does not exist"),
        (("encode", "text"), b"", 65, "not a JSON file"),
        (("decode", "RUN", "--ids"), b"1 2\nba\n", 65, "stdin, line 2: --ids expects token ids"),
    ],
)
def test_wrong_input_is_reported(
    corpus: Path, translator: Path, words: tuple[str, ...], stdin: bytes, code: int, message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(corpus.parent)
    result = call("tokenizer", *[translator if word == "RUN" else word for word in words], stdin=stdin)
    assert result.code == code
    assert message in result.err
    assert result.err.startswith("error: ")
