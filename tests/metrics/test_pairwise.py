"""Pairwise sentence scores equal those of sacreBLEU."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.core.errors import UsageError
from heed.metrics import sentence_scores
from heed.metrics.pairwise import pairwise_scores

TEXTS = st.lists(st.text("abc .é日", max_size=20), min_size=1, max_size=5)


@pytest.mark.parametrize("name", ["chrf", "bleu"])
@settings(max_examples=60)
@given(texts=TEXTS)
def test_each_pair_has_the_sentence_score_of_sacrebleu(name: str, texts: list[str]) -> None:
    actual = pairwise_scores(name, texts)
    for row, text in enumerate(texts):
        expected = sentence_scores(name, [text] * len(texts), texts)
        np.testing.assert_allclose(actual[row], expected, atol=1e-9)


def test_words_are_split_as_the_language_requires() -> None:
    texts = ["我们走吧", "我们走"]
    assert pairwise_scores("bleu", texts, "zh")[0, 1] > 0
    expected = sentence_scores("bleu", texts[:1], texts[1:], language="zh")
    assert pairwise_scores("bleu", texts, "zh")[0, 1] == pytest.approx(expected[0])


def test_another_metric_is_an_error() -> None:
    with pytest.raises(UsageError, match="unknown pairwise metric 'ter'"):
        pairwise_scores("ter", ["a"])
