"""Run folders of every format that heed has ever written can be used and resumed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command import call
from fixtures.make import ENDS_AT, STOPPED_AT, answers
from toy import without_shape_checks

from heed.core.formats import FORMAT
from heed.training.metrics_log import read_metrics

__all__ = ["without_shape_checks"]

FIXTURES = Path(__file__).resolve().parent / "fixtures"
every_format = pytest.mark.parametrize("number", range(1, FORMAT + 1))


def folder_of(number: int) -> tuple[Path, dict[str, Any]]:
    """The runs of a format, and what they are known to answer."""
    folder = FIXTURES / f"run-v{number}"
    return folder, json.loads((folder / "expected.json").read_text(encoding="utf-8"))


@every_format
def test_an_old_run_gives_the_recorded_answers(number: int) -> None:
    folder, expected = folder_of(number)
    found = answers(folder)
    assert found["translations"] == expected["translations"]
    for name in ("scores", "log_probs"):
        assert found[name] == pytest.approx(expected[name], rel=1e-4)


@every_format
def test_an_old_training_is_resumed_to_the_recorded_end(number: int, tmp_path: Path) -> None:
    folder, expected = folder_of(number)
    run = shutil.copytree(folder / "translation", tmp_path / "run")
    result = call("train", "--resume", run)
    assert result.code == 0, result.err
    assert f"reached {ENDS_AT} updates" in result.err
    end = [event for event in read_metrics(run) if event["step"] > STOPPED_AT and event["event"] != "end"]
    assert len(end) == len(expected["end"])
    for event, known in zip(end, expected["end"], strict=True):
        assert {name: event[name] for name in known} == pytest.approx(known, rel=1e-3)


@every_format
def test_other_commands_accept_old_runs(number: int, tmp_path: Path) -> None:
    folder, _ = folder_of(number)
    assert call("info", folder / "bigram").code == 0
    assert call("info", folder / "translation").code == 0
    averaged = call("average", folder / "translation", "--last", "1", "--out", tmp_path / "averaged")
    assert averaged.code == 0, averaged.err
    assert call("translate", tmp_path / "averaged", stdin="ba\n").code == 0


@every_format
def test_the_folders_stay_small(number: int) -> None:
    folder, _ = folder_of(number)
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 150_000
