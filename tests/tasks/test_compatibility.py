"""Warnings about texts that differ from those of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy import pairs, prepared

from heed.evaluation.test_set import HeldOut
from heed.tasks.translation.compatibility import differences, is_another_language, warn_about_input, warn_about_test_set

PLAIN = [f"Two dogs, {i} of them brown, run in the snow." for i in range(30)]
TOKENISED = [line.replace(",", " ,").replace(".", " .") for line in PLAIN]
LOWER = [line.lower() for line in PLAIN]


@pytest.mark.parametrize(
    ("own", "lines", "found"),
    [
        (PLAIN, PLAIN, []),
        (PLAIN, LOWER, ["has no capital letters, unlike the text of"]),
        (LOWER, PLAIN, ["has capital letters, unlike the text of"]),
        (PLAIN, TOKENISED, ["is tokenised, unlike the text of"]),
        (TOKENISED, PLAIN, ["is not tokenised, unlike the text of"]),
        (PLAIN, ["两只狗在雪地里跑。"] * 30, []),
        (["one word"] * 30, ["another"] * 30, []),
    ],
)
def test_differences_in_tokenisation_and_case_are_detected(own: list[str], lines: list[str], found: list[str]) -> None:
    assert list(differences(own, lines)) == found


def test_a_reference_in_another_language_causes_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = prepared(tmp_path, data__tgt_lang="de").predictor
    own = HeldOut(("a", "b"), pairs()[:30])
    warn_about_test_set(run, own, quiet=False)
    assert "warning" not in capsys.readouterr().err
    other = HeldOut(("a", "b"), [(src, f"две собаки играют в снегу {i}") for i, src in enumerate(own.sources)])
    warn_about_test_set(run, other, quiet=False)
    assert "the reference does not look like the German of" in capsys.readouterr().err
    warn_about_test_set(run, HeldOut(("a", "b"), other.rows[:5]), quiet=False)  # too few to tell
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("own", "lines", "is_another"),
    [
        (["犬が雪の中を走っている。"] * 20, ["日本の首都は東京である。"] * 20, False),
        (["犬が雪の中を走っている。"] * 20, ["两只狗在雪地里跑。"] * 20, True),
        (["两只狗在雪地里跑。"] * 20, ["Zwei Hunde im Schnee."] * 20, True),
        (["Zwei Hunde im Schnee."] * 50, ["Der Himmel war grau."] * 50, False),
        (["Zwei Hunde im Schnee."] * 100, ["Le ciel était couvert, hélas."] * 100, True),
    ],
    ids=["Japanese", "Chinese for Japanese", "German for Chinese", "few lines", "French for German"],
)
def test_texts_of_one_language_may_differ(own: list[str], lines: list[str], is_another: bool) -> None:
    assert is_another_language(own, lines) == is_another


def test_input_with_capitals_causes_a_warning_for_a_run_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = prepared(tmp_path).predictor
    warn_about_input(run, [src for src, _ in pairs()[:30]], quiet=False)
    assert not capsys.readouterr().err
    warn_about_input(run, [src.title() for src, _ in pairs()[:30]], quiet=False)
    assert "the input has capital letters, unlike the text of" in capsys.readouterr().err
