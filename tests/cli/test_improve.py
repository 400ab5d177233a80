"""`heed improve`: steps are done once, a model is kept only if a test says so, and inputs that changed are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command import Result, call
from toy import write_lines

from heed.run import Run
from heed.tasks.prepare import read_valid
from heed.tasks.translation import improving, synthetic_pairs
from heed.tasks.translation.corrections import Decision
from heed.tasks.translation.synthetic_pairs import Texts


@pytest.fixture
def mono(translator: Path, tmp_path: Path) -> Path:
    """Text in the target language, some lines of which are in the validation data or repeated."""
    lines = (translator.parent / "test.bb").read_text().splitlines()
    held = [tgt for _, tgt in read_valid(translator)][:3]
    return write_lines(tmp_path / "mono.bb", [*lines, *held, lines[0]])


def improve(run: Path, out: Path, *words: Any) -> Result:
    return call("improve", run, "--out", out, "--threads", "1", *words)


def copying(monkeypatch: pytest.MonkeyPatch, translator: Path) -> list[str]:
    """Train nothing: each new run is a copy of the translator. Returns the names of the new runs."""
    trained: list[str] = []

    def run_training(recipe: Any, keys: Any, options: Any, **_: Any) -> None:
        trained.append(f"{options.out.parent.name}/{options.out.name}")
        shutil.rmtree(options.out, ignore_errors=True)
        shutil.copytree(translator, options.out)

    monkeypatch.setattr("heed.cli.improve.run_training", run_training)
    return trained


def accepting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(improving, "decide", lambda _: Decision(True, "so it is"))


def test_an_equal_model_is_not_kept_and_nothing_is_done_twice(
    translator: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = copying(monkeypatch, translator)
    result = improve(translator, tmp_path / "out", "--mono-tgt", mono)
    assert result.code == 3, result.err
    assert not (tmp_path / "out").exists()
    assert trained == ["round-1/reverse", "round-1/candidate"]
    record = json.loads((tmp_path / "out.improve" / improving.RECORD).read_text())
    assert [trial["kept"] for trial in record["trials"]] == [False]
    assert "stays" in result.err

    again = improve(translator, tmp_path / "out", "--mono-tgt", mono)
    assert again.code == 3
    assert len(trained) == 2


def test_a_better_model_becomes_the_run_and_its_report_says_how(
    translator: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = copying(monkeypatch, translator)
    accepting(monkeypatch)
    monkeypatch.setattr(improving, "MOST_ROUNDS", 2)
    monkeypatch.setattr(improving, "add_section", lambda run, text: (run.folder / "section").write_text(text))
    result = improve(translator, tmp_path / "out", "--mono-tgt", mono)
    assert result.code == 0, result.err
    assert trained == ["round-1/reverse", "round-1/candidate", "round-2/reverse", "round-2/candidate"]
    assert Run(tmp_path / "out").shapes == Run(translator).shapes
    assert "| 2 | translator |" in (tmp_path / "out" / "section").read_text()


def test_an_interrupted_improvement_translates_nothing_again(
    translator: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = copying(monkeypatch, translator)

    def interrupted(recipe: Any, keys: Any, options: Any, **_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("heed.cli.improve.run_training", interrupted)
        assert improve(translator, tmp_path / "out", "--mono-tgt", mono).code == 130
    text = tmp_path / "out.improve" / "round-1" / "forward-pairs" / "pairs.tgt"
    before = text.stat().st_mtime_ns
    assert improve(translator, tmp_path / "out", "--mono-tgt", mono).code == 3
    assert text.stat().st_mtime_ns == before
    assert trained == ["round-1/reverse", "round-1/candidate"]


def test_changed_text_is_refused(translator: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copying(monkeypatch, translator)
    improve(translator, tmp_path / "out", "--mono-tgt", mono)
    with mono.open("a") as file:
        file.write("another line\n")
    result = improve(translator, tmp_path / "out", "--mono-tgt", mono)
    assert result.code == 65
    assert f"--mono-tgt {mono} changed" in result.err


def test_text_that_the_data_has_is_left_out(translator: Path, mono: Path, tmp_path: Path) -> None:
    run = Run(translator)
    texts = Texts(tmp_path / "text", run.recipe.data)
    dropped = texts.write(run, {"src": [], "tgt": [mono]})
    assert dropped["tgt"]["in the validation data"] == 3
    assert dropped["tgt"]["repeated, or in the training pairs"] >= 1
    kept = texts.path("mono", "tgt").read_text().splitlines()
    assert kept
    assert not set(kept) & {tgt for _, tgt in read_valid(translator)}
    assert not set(texts.path("pairs", "src").read_text().splitlines()) & {src for src, _ in read_valid(translator)}


def test_text_of_the_other_side_is_refused(translator: Path, tmp_path: Path) -> None:
    result = improve(translator, tmp_path / "out", "--mono-tgt", translator.parent / "test.aa")
    assert result.code == 2
    assert "does not look like the target language" in result.err


def test_a_part_has_only_pairs_with_a_translation(tmp_path: Path) -> None:
    for side, lines in (("src", ["a", "b", "c"]), ("tgt", ["A", "", "C"])):
        write_lines(tmp_path / f"0.{side}", lines)
    assert synthetic_pairs.keep_translated(tmp_path) == 2
    assert (tmp_path / "pairs.src").read_text() == "a\nc\n"
    assert (tmp_path / "pairs.tgt").read_text() == "A\nC\n"


def test_the_time_is_divided_among_rounds() -> None:
    plan = improving.plan_for(180, 40, 5, has_reverse=False)
    assert plan.rounds == 2
    assert plan.reverse is not None and plan.candidate is not None
    assert plan.rounds * (plan.reverse + plan.candidate + plan.translating) == pytest.approx(180)
    assert improving.plan_for(30, 40, 100, has_reverse=True).share == pytest.approx(0.09)
    assert improving.plan_for(None, 40, 5, has_reverse=True).rounds == improving.MOST_ROUNDS
