"""Metrics log: crashes, resumed trainings, and numbers that JSON does not have."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from heed.core.errors import UsageError
from heed.report.usability import kept_validation
from heed.training import metrics_log
from heed.training.metrics_log import MetricsLog, read_metrics, require_tensorboard


def test_events_are_read_in_order_and_the_latest_of_equal_ones_counts(tmp_path: Path) -> None:
    with MetricsLog(tmp_path) as log:
        log.write("train", 5, {"loss": 3.0})
        log.write("train", 10, {"loss": 2.0})
        log.write("validation", 10, {"bleu": 1.0, "samples": [{"src": "ä"}]})
    with MetricsLog(tmp_path) as log:  # resumed from update 5
        log.write("train", 10, {"loss": 2.5})
    assert read_metrics(tmp_path) == [
        {"event": "train", "step": 5, "loss": 3.0},
        {"event": "train", "step": 10, "loss": 2.5},
        {"event": "validation", "step": 10, "bleu": 1.0, "samples": [{"src": "ä"}]},
    ]


def test_events_of_a_killed_training_that_was_continued_from_an_earlier_update_are_left_out(tmp_path: Path) -> None:
    with MetricsLog(tmp_path) as log:
        log.write("validation", 10, {"best": True})
        log.write("train", 40, {})
        log.write("validation", 40, {"best": True})
    with MetricsLog(tmp_path) as log:  # continued from update 10
        log.write("validation", 14, {"best": True})
        log.write("end", 14, {})
    found = [(event["event"], event["step"]) for event in read_metrics(tmp_path)]
    assert found == [("validation", 10), ("validation", 14), ("end", 14)]


def test_the_validation_of_the_weights_that_a_run_has_is_read_although_its_training_was_killed(tmp_path: Path) -> None:
    with MetricsLog(tmp_path) as log:
        log.write("validation", 10, {"best": True})
        log.write("validation", 40, {"best": True, "bleu": 9.0})
    with MetricsLog(tmp_path) as log:  # no better weights have replaced those of update 40
        log.write("validation", 14, {"best": False})
        log.write("end", 14, {})
    events = read_metrics(tmp_path)
    assert [event["step"] for event in events] == [10, 40, 14, 14]
    assert kept_validation(events) == {"event": "validation", "step": 40, "best": True, "bleu": 9.0}


def test_a_line_that_a_crash_cut_off_does_not_affect_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b'{"event": "train", "step": 5}\n{"event": "tr\xc3')
    with MetricsLog(tmp_path) as log:
        log.write("train", 10, {})
    assert [event["step"] for event in read_metrics(tmp_path)] == [5, 10]


def test_each_line_is_strict_json_for_all_numbers(tmp_path: Path) -> None:
    with MetricsLog(tmp_path) as log:
        log.write("train", 1, {"loss": math.nan, "perplexity": math.inf, "lr": 0.5})
    text = (tmp_path / "metrics.jsonl").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {
        "event": "train", "step": 1, "loss": None, "perplexity": None, "lr": 0.5,
    }  # fmt: skip


def test_a_run_without_a_log_has_no_events(tmp_path: Path) -> None:
    assert read_metrics(tmp_path) == []


def test_tensorboard_files_hold_the_numbers(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with MetricsLog(tmp_path, tensorboard=True) as log:
        log.write("train", 5, {"loss": 3.0})
        log.write("validation", 10, {"bleu": 12.5, "best": True, "samples": []})
    found = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in found.Scalars("train/loss")] == [(5, 3.0)]
    assert [(event.step, event.value) for event in found.Scalars("validation/bleu")] == [(10, 12.5)]


def test_a_missing_tensorboard_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_log, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"needs the tensorboard package: pip install tensorboard"):
        require_tensorboard()
