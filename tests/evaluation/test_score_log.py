"""The log of scores in a run folder."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from heed.core.errors import StorageError
from heed.evaluation.evaluation import Evaluation
from heed.evaluation.leakage import Leakage
from heed.evaluation.score_log import SCORE_LOG, log_scores, read_scores, times_scored
from heed.evaluation.test_set import HeldOut
from heed.metrics.metric import Score
from heed.run import Run

TIMES = (f"2026-11-22T12:{minute:02}:00.000+00:00" for minute in range(60))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A folder that passes for a run."""
    (tmp_path / "recipe.toml").write_text("")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    return Run(tmp_path)


def evaluation(run: Run, value: float = 30.0, last: str = "b") -> Evaluation:
    """A score of that value, on test data whose last line is that."""
    test = HeldOut(("t.aa", "t.bb"), [("a", "A"), ("b", last)])
    leakage = Leakage(2, {"pair": 1, "src": 1, "tgt": 1}, 0, (1,), 2)
    score = Score("BLEU", value, "nrefs:1|tok:13a", 29.0, 31.0)
    return Evaluation("run", test, run, {"bleu": score}, {"search": {"beam_size": 5}}, 0.98, leakage=leakage)


def test_an_entry_has_the_files_the_weights_the_search_and_the_scores(run: Run) -> None:
    assert read_scores(run) == []
    log_scores(run, evaluation(run), next(TIMES))
    log_scores(run, evaluation(run, 31.0), next(TIMES))
    first, second = read_scores(run)
    assert first["scores"] == [evaluation(run).scores["bleu"].to_json()]
    assert second["scores"][0]["value"] == 31.0
    assert [(file["name"], file["lines"]) for file in first["test"]] == [("t.aa", 2), ("t.bb", 2)]
    assert first["search"] == {"beam_size": 5}
    assert (first["length_ratio"], first["leaked"], len(first["weights"])) == (0.98, 1, 64)
    assert datetime.fromisoformat(first["time"]).utcoffset() is not None
    assert str(run.folder) not in (run.folder / SCORE_LOG).read_text()


def test_the_times_are_those_of_the_same_lines(run: Run) -> None:
    assert times_scored(run, evaluation(run), "now") == []
    log_scores(run, evaluation(run), next(TIMES))
    log_scores(run, evaluation(run, last="other"), next(TIMES))
    log_scores(run, evaluation(run), next(TIMES))
    assert len(times_scored(run, evaluation(run), "now")) == 2
    assert len(times_scored(run, evaluation(run, last="third"), "now")) == 0


def test_rows_of_one_command_count_once(run: Run) -> None:
    for last in ("b", "other", "b"):
        log_scores(run, evaluation(run, last=last), "then")
    assert times_scored(run, evaluation(run), "now") == ["then"]
    assert times_scored(run, evaluation(run), "then") == []


@pytest.mark.parametrize("damage", ["", "{", "[]", "3", '{"time": 1, "test": [], "scores": []}',
                                    '{"time": "t", "test": [{}], "scores": []}',
                                    '{"time": "t", "test": [], "scores": [{"name": "BLEU"}]}',
                                    '{"time": "t", "test": [], "scores": [], "ensemble": 3}',
                                    '{"time": "t", "test": [], "scores": [], "ensemble": [1]}',
                                    '{"time": "t", "test": [], "scores": [{"value": "x", "name": "", "signature": ""}]}'
                                    ])  # fmt: skip
def test_damaged_lines_are_skipped(run: Run, damage: str) -> None:
    log_scores(run, evaluation(run), next(TIMES))
    with (run.folder / SCORE_LOG).open("a") as file:
        file.write(damage + "\n")
    log_scores(run, evaluation(run), next(TIMES))
    assert len(read_scores(run)) == 2


def test_an_entry_after_an_incomplete_line_is_kept(run: Run) -> None:
    (run.folder / SCORE_LOG).write_text('{"time": "2026')
    log_scores(run, evaluation(run), next(TIMES))
    assert len(read_scores(run)) == 1


def test_an_infinite_score_is_null(run: Run) -> None:
    log_scores(run, evaluation(run, float("inf")), next(TIMES))
    entry = json.loads((run.folder / SCORE_LOG).read_text(), parse_constant=lambda name: pytest.fail(name))
    assert entry["scores"][0]["value"] is None
    assert len(read_scores(run)) == 1


def test_a_log_that_is_a_link_is_not_written(
    run: Run, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "file"
    elsewhere.write_text("precious")
    (run.folder / SCORE_LOG).symlink_to(elsewhere)
    with pytest.raises(StorageError, match=r"scores\.jsonl is a link"):
        log_scores(run, evaluation(run), next(TIMES))
    assert elsewhere.read_text() == "precious"
    assert read_scores(run) == []
    assert "scores.jsonl is a link" in capsys.readouterr().err
