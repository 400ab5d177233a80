"""Scores of word alignment: the definition by hand."""

from __future__ import annotations

import pytest

from heed.metrics.alignment import LINK_METRICS


def test_the_scores_by_hand() -> None:
    """A = 4 links, S = 3, P = 5; two of A are sure and three possible."""
    output, gold = "0-0 1-1 2-2 3-0", "0-0 1-1 2?2 3-3 2?3"
    values = {metric.title: metric().score([output], [gold]).value for metric in LINK_METRICS}
    precision, recall = 3 / 4, 2 / 3
    assert values == pytest.approx(
        {
            "precision": 100 * precision,
            "recall": 100 * recall,
            "F1": 200 * precision * recall / (precision + recall),
            "AER": 100 * (1 - (2 + 3) / (4 + 3)),
        }
    )


def test_sure_links_alone_make_the_rate_one_minus_f1() -> None:
    outputs, gold = ["0-0 0-1", "1-1"], ["0-0 1-1", "1-1 0-0"]
    values = {metric.title: metric().score(outputs, gold).value for metric in LINK_METRICS}
    assert values["AER"] == pytest.approx(100 - values["F1"])


def test_nothing_to_compare_is_no_division() -> None:
    assert [metric().score([""], [""]).value for metric in LINK_METRICS] == [0, 0, 0, 0]


def test_the_interval_is_signed() -> None:
    score = LINK_METRICS[3]().score(["0-0", "0-1"], ["0-0", "0-0"], intervals=100)
    assert score.signature == "links:och-ney|bs:100|seed:12345"
    assert score.low is not None and score.low <= score.value
