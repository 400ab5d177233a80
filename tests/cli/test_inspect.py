"""Tests of `heed inspect`: the page, and the errors of wrong calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import call

RUNS = Path(__file__).resolve().parent.parent / "fixtures" / "run-v1"
TRANSLATION, BIGRAM = RUNS / "translation", RUNS / "bigram"


def test_a_page_is_written_of_a_translation_of_a_given_one_and_of_a_text(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    for flags in (
        (TRANSLATION, "--src", "ba ce"),
        (TRANSLATION, "--src", "ba ce", "--tgt", "kan ler", "--beam", 2),
        (BIGRAM, "--text", "the old dog"),
    ):
        result = call("inspect", *flags, "--out", out)
        assert result.code == 0, result.err
        assert str(out) in result.err
        assert result.out == ""
        page = out.read_text(encoding="utf-8")
        assert page.startswith("<!doctype html>")
        assert ('"text": "ce ", "kind": "word"' if TRANSLATION in flags else '"text": "dog ", "kind": "word"') in page
        out.unlink()


def test_numbers_are_printed_on_request(tmp_path: Path) -> None:
    result = call("inspect", TRANSLATION, "--src", "ba ce", "--json", "--nbest", 2, "--out", tmp_path / "no.html")
    document = json.loads(result.out)
    assert document["task"] == "translation"
    assert len(document["alternatives"]) == 2
    assert not (tmp_path / "no.html").exists()


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ((TRANSLATION,), 2, "give --src"),
        ((TRANSLATION, "--src", "ba", "--text", "ba"), 2, "cannot be combined"),
        ((BIGRAM, "--tgt", "ba"), 2, "give --src"),
        ((TRANSLATION, "--text", "ba"), 2, "--text needs a run that can generate"),
        ((BIGRAM, "--src", "ba"), 2, "--src needs a run that can translate"),
        ((TRANSLATION, "--src", "  "), 2, "the source is blank"),
        ((RUNS / "nowhere", "--src", "ba"), 66, "no such run folder"),
    ],
)  # fmt: skip
def test_wrong_calls_are_refused(flags: tuple[object, ...], code: int, message: str, tmp_path: Path) -> None:
    result = call("inspect", *flags, "--out", tmp_path / "page.html")
    assert result.code == code
    assert message in result.err
    assert not (tmp_path / "page.html").exists()


def test_a_page_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    result = call("inspect", TRANSLATION, "--src", "ba", "--out", tmp_path / "none" / "page.html")
    assert result.code == 2
    assert "name a file in an existing folder" in result.err
