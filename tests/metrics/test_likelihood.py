"""Likelihoods of texts: perplexities and bits, per token, word, character and byte."""

import json
import math

import numpy as np
import pytest

from heed.core.errors import DataError
from heed.metrics import score_likelihoods
from heed.metrics.likelihood import LikelihoodStatistics, TextLikelihood
from heed.metrics.significance import compare

SENTENCES = [
    TextLikelihood.of_sentence("ein kleiner Hund", -12.5, 4),
    TextLikelihood.of_sentence("groß", -7.25, 3),
    TextLikelihood.of_sentence("", -0.5, 1),
]


def test_penn_treebank_words_are_counted_with_the_ends_of_lines():
    counts = {"train": (887_521, 42_068, 929_589), "valid": (70_390, 3_370, 73_760), "test": (78_669, 3_761, 82_430)}
    for num_words, num_lines, published in counts.values():
        assert TextLikelihood(num_words=num_words, num_sentences=num_lines).count("word") == published


def test_blocks_of_lines_are_drawn_together():
    lines = [TextLikelihood(-float(i), i, i, i, i, 1) for i in range(1, 8)]
    rows = LikelihoodStatistics.of(lines, 3).rows
    assert rows[:, 1].tolist() == [6, 15, 7]
    assert rows[:, 0].tolist() == [-6, -15, -7]
    scores = score_likelihoods(lines, intervals=100, how="context:stream", lines_per_block=3)
    assert (
        scores["perplexity_per_word"].signature
        == "unit:word|n:35|eos:yes|unk:0|context:stream|bs:100|seed:12345|block:3"
    )


def test_a_sentence_counts_its_words_characters_and_bytes():
    assert TextLikelihood.of_sentence("groß  und 猫", -1.0, 5) == TextLikelihood(-1.0, 5, 3, 11, 14, 1)


def test_the_end_of_a_sentence_counts_in_every_unit():
    text = TextLikelihood.of_sentence("groß", math.log(1 / 2**12), 3)
    assert text.perplexity("token") == pytest.approx(2 ** (12 / 3))
    assert text.perplexity("word") == pytest.approx(2 ** (12 / 2))
    assert text.perplexity("character") == pytest.approx(2 ** (12 / 5))
    assert text.bits("character") == pytest.approx(12 / 5)
    assert text.bits("byte") == pytest.approx(12 / 6)


def test_a_stream_without_ends_divides_by_the_text_alone():
    text = TextLikelihood(-math.log(2) * 8, num_tokens=4, num_words=2, num_characters=4, num_bytes=8)
    assert (text.perplexity("word"), text.bits("byte")) == (pytest.approx(16), pytest.approx(1))
    assert score_likelihoods([text], intervals=0)["bits_per_byte"].signature == "unit:byte|n:8|eos:no|unk:0"


def test_likelihoods_add_up_field_by_field():
    a, b, c = SENTENCES
    assert a + b + c == TextLikelihood(-20.25, 8, 4, 20, 21, 3)
    assert a + TextLikelihood() == a


def test_scores_carry_their_unit_and_the_numbers_of_the_properties():
    total = SENTENCES[0] + SENTENCES[1]
    assert [
        (score.name, score.value, score.signature) for score in score_likelihoods([total], intervals=0).values()
    ] == [
        ("perplexity per token", total.perplexity("token"), "unit:token|n:7|eos:yes|unk:0"),
        ("perplexity per word", total.perplexity("word"), "unit:word|n:6|eos:yes|unk:0"),
        ("perplexity per character", total.perplexity("character"), "unit:character|n:22|eos:yes|unk:0"),
        ("bits per character", total.bits("character"), "unit:character|n:22|eos:yes|unk:0"),
        ("bits per byte", total.bits("byte"), "unit:byte|n:23|eos:yes|unk:0"),
    ]


def test_intervals_enclose_the_score_and_are_reproducible():
    random = np.random.default_rng(0)
    sentences = [TextLikelihood.of_sentence("ab cd", float(x), 3) for x in random.normal(-10, 2, size=100)]
    scores = score_likelihoods(sentences, intervals=200)
    assert scores == score_likelihoods(sentences, intervals=200)
    for score in scores.values():
        assert score.low < score.value < score.high
        assert score.signature.endswith("|bs:200|seed:12345")
    # all sentences are of one length: the interval is that of a mean
    nats = np.log([scores["perplexity"].low, scores["perplexity"].high])
    assert (nats[1] - nats[0]) / 2 == pytest.approx(1.96 * 2 / math.sqrt(100) / 3, rel=0.25)


def test_impossible_text_has_infinite_perplexity_and_no_interval():
    impossible = TextLikelihood.of_sentence("ab", -math.inf, 2)
    scores = score_likelihoods([*SENTENCES, impossible], intervals=20)
    assert all(score.value == math.inf and score.low is None for score in scores.values())
    assert TextLikelihood(-1e6, 2, 1, 1, 1, 1).perplexity("token") == math.inf


def test_blank_lines_of_a_text_without_ends_do_not_prevent_intervals_and_tests():
    blank, words = (TextLikelihood.of_sentence(text, -3.0 * len(text), len(text), ends=False) for text in ("", "ab"))
    text = [*[blank] * 20, words]
    scores = score_likelihoods(text, intervals=100)
    assert scores["perplexity"].low == scores["perplexity"].high == pytest.approx(math.exp(3))
    statistics = LikelihoodStatistics.of(text)
    comparison = compare(statistics, statistics)
    assert (comparison.difference, comparison.p_bootstrap, comparison.p_randomisation) == (0, 1, 1)
    with pytest.raises(DataError, match="no words"):
        score_likelihoods([TextLikelihood.of_sentence(" ", -1.0, 1, ends=False)] * 2)


def test_saved_counts_are_plain_numbers():
    assert json.dumps([score.to_json() for score in score_likelihoods(SENTENCES, intervals=5).values()])


def test_an_empty_text_is_an_error():
    with pytest.raises(DataError, match="no tokens"):
        score_likelihoods([])
