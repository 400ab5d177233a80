"""Scores by sentence length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from heed.metrics import output_statistics
from heed.metrics.sentence_length import LengthBucket, by_length, length_unit


def buckets_of(sources, outputs=None, references=None):
    references = references or ["the small dog runs"] * len(sources)
    statistics = output_statistics(outputs or references, references, names=("bleu", "chrf"))
    return by_length(sources, statistics, intervals=20)


def test_the_ends_of_the_buckets_are_5_10_15_20_30_and_50_words():
    sources = ["w " * length for length in (0, 1, 5, 6, 10, 11, 15, 16, 20, 21, 30, 31, 50, 51, 400)]
    actual = buckets_of(sources)
    assert [(bucket.label, bucket.num_sentences) for bucket in actual] == [
        ("up to 5", 3), ("6–10", 2), ("11–15", 2), ("16–20", 2), ("21–30", 2), ("31–50", 2), ("over 50", 2),
    ]  # fmt: skip


def test_the_score_of_a_bucket_is_that_of_its_sentences():
    sources = ["one two", "one two three four five six seven", "one", "six words are in this line"]
    outputs = ["the small cat runs home", "a man sleeps in the green park", "a dog", "people stand on the street"]
    references = ["the small dog runs home", "a man sleeps in a green park", "a dog", "people stand in the street"]
    short, long = buckets_of(sources, outputs, references)
    for bucket, places in ((short, [0, 2]), (long, [1, 3])):
        alone = [[lines[place] for place in places] for lines in (outputs, references)]
        assert bucket.scores["bleu"].value == BLEU().corpus_score(alone[0], [alone[1]]).score
        assert bucket.scores["chrf"].value == CHRF().corpus_score(alone[0], [alone[1]]).score
        assert bucket.scores["bleu"].low <= bucket.scores["bleu"].value <= bucket.scores["bleu"].high


def test_buckets_without_a_sentence_are_left_out():
    assert [bucket.label for bucket in buckets_of(["w", "w " * 45])] == ["up to 5", "31–50"]


@pytest.mark.parametrize(
    ("lines", "unit"),
    [
        (["Ein Mann geht über die Straße."], "words"),
        (["Donaudampfschifffahrt", "Ein Hund läuft"], "words"),
        (["一个男人走过街道，他的狗跟在后面。"], "characters"),
        (["犬が公園で走っている。", "二人の子供が公園で遊んでいます。"], "characters"),
        (["我喜欢猫。", "他昨天去学校了。"], "characters"),
        (["我 喜欢 猫 。", "他 昨天 去 学校 了 。"], "words"),
        (["", "  "], "words"),
        (["Hund", "Katze"], "words"),
    ],
)
def test_text_without_blanks_is_counted_in_characters(lines, unit):
    assert length_unit(lines) == unit


def test_buckets_of_characters_are_twice_as_wide():
    lines = ["一" * length for length in (10, 11, 101)]
    assert [(bucket.label, bucket.unit) for bucket in buckets_of(lines)] == [
        ("up to 10", "characters"), ("11–20", "characters"), ("over 100", "characters"),
    ]  # fmt: skip


@given(st.lists(st.integers(0, 80), min_size=1, max_size=30))
def test_every_sentence_is_in_one_bucket(lengths):
    actual = buckets_of(["w " * length for length in lengths])
    assert sum(bucket.num_sentences for bucket in actual) == len(lengths)


def test_a_bucket_can_be_written_as_json():
    [bucket] = buckets_of(["a b"])
    assert isinstance(bucket, LengthBucket)
    actual = bucket.to_json()
    assert (actual["label"], actual["shortest"], actual["longest"], actual["num_sentences"]) == ("up to 5", 0, 5, 1)
    assert actual["scores"]["chrf"] == bucket.scores["chrf"].to_json()
