"""Tests of the options that several verbs share."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import call

from heed.cli.options import language_of, parse_minutes, search_options
from heed.core.errors import UsageError
from heed.decoding.options import SearchOptions


@pytest.mark.parametrize(
    ("text", "minutes"), [("90s", 1.5), ("30m", 30.0), ("2h", 120.0), ("1d", 1440.0), ("5", 5.0), ("1.5h", 90.0)]
)
def test_times_are_read(text: str, minutes: float) -> None:
    assert parse_minutes(text) == pytest.approx(minutes)


@pytest.mark.parametrize("text", ["", "0", "0h", "-5m", "2 hours", "1h30m", "fast", "1e3"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--max-time takes a duration such as 90s, 30m or 2h, got "):
        parse_minutes(text)


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("train.de", "de"), ("folder.fr/train.de.gz", "de"), ("europarl-v7.de-en.de", "de"), ("train.tok.ja.xz", "ja"),
        ("train.ja.txt", "ja"), ("train.ja.tok", "ja"), ("train.JA.txt", "ja"), ("news.zh_CN", "zh_CN"),
        ("news.zh-CN.txt", "zh-CN"), ("jpn_Jpan.dev", "jpn_Jpan"), ("corpus.xyz", "xyz"), ("corpus.xyz.gz", "xyz"),
        ("train.txt", ""), ("train", ""), ("train.csv", ""), ("my.txt", ""), ("a.src", ""), ("v1.2.txt", ""),
        ("train.abc.txt", ""), ("to_Do.txt", ""),
        ("my_Data.txt", ""), ("gz", ""), ("en.gz", ""), ("pt_BR.txt", "pt_BR"),
    ],
)  # fmt: skip
def test_the_language_in_the_name_of_a_file(name: str, language: str) -> None:
    assert language_of(name) == language


RECIPE = SearchOptions(beam_size=4, length_penalty=1.0, batch_size=7, temperature=0.5)


def test_the_recipe_gives_the_defaults() -> None:
    assert search_options(RECIPE, {"beam_size": None, "nbest": None}) == RECIPE


def test_the_command_line_takes_precedence() -> None:
    options = search_options(RECIPE, {"beam_size": 2, "length_penalty": 0.0})
    assert (options.beam_size, options.length_penalty, options.batch_size) == (2, 0.0, 7)


def test_more_hypotheses_widen_the_default_beam() -> None:
    assert search_options(RECIPE, {"nbest": 6}).beam_size == 6
    assert search_options(RECIPE, {"nbest": 2}).beam_size == 4
    with pytest.raises(UsageError, match="nbest must not be above beam_size, got 6 and 5"):
        search_options(RECIPE, {"nbest": 6, "beam_size": 5})


def test_a_given_beam_size_is_used() -> None:
    recipe = SearchOptions(mbr="chrf", candidates=20)
    assert search_options(recipe, {"beam_size": 5}).width == 5
    assert search_options(recipe, {"beam_size": 1}).mbr == ""
    assert search_options(recipe, {"beam_size": 5, "candidates": 8}).width == 8
    assert search_options(SearchOptions(), {"beam_size": 5, "mbr": "chrf"}).width == 5
    sampled = SearchOptions(mbr="chrf", candidates=20, sample=True)
    assert search_options(sampled, {"beam_size": 5}).width == 20
    assert search_options(sampled, {"beam_size": 5, "sample": False}).width == 5
    for given in ({"beam_size": 1, "mbr": "chrf"}, {"beam_size": 3, "nbest": 8}):
        with pytest.raises(UsageError, match="--beam"):
            search_options(recipe, given)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["predict", "run", "--table", "f.csv", "--json"], "--table prints a table: leave out --json."),
        (["predict", "run", "--table", "f.csv", "--images", "x"], "--images and --table are different inputs"),
        (["predict", "run", "--table", "f.csv", "--input-as", "text"], "--input-as says what stdin has"),
        (["evaluate", "run", "--table", "f.csv", "--ensemble"], "leave out --ensemble"),
        (["embed", "run", "--per-token", "--pooling", "max"], "leave out --pooling"),
        (["align", "run", "--src", "a", "--tgt", "b", "--symmetrise", "union"], "--symmetrise needs a translator for"),
        (
            ["align", "run", "--src", "a", "--tgt", "b", "--reverse-head", "1.1"],
            "--reverse-head needs a translator for",
        ),
        (["inspect", "run", "--text", "x", "--beam", "3"], "--beam is for translators"),
        (["inspect", "run", "--text", "x", "--nbest", "3"], "--nbest is for translations and captions"),
        (["train", "--src", "a", "--tgt", "b", "--out", "new", "--strict"], "--strict applies only to --resume RUN"),
        (
            ["data", "check", "--table", "f", "--questions", "--label-column", "2"],
            "--label-column is for a table of la",
        ),
        (["data", "check", "f.csv", "--questions"], "--questions is for a table (--table F), and not for pairs"),
        (["data", "check", "--table", "f.csv", "--text"], "--text is for text (--text), and not for a table"),
        (["data", "check", "a", "b", "--tag-column", "3"], "--tag-column is for tagged tokens (--conll)"),
        (["data", "check", "a", "--text", "--src-lang", "en"], "--src-lang is for pairs, and not for text"),
    ],
)
def test_options_without_effect_are_refused(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    Path("run/recipe.toml").write_text('task = "translation"\n')
    result = call(*words)
    assert result.code == 2 and message in result.err
