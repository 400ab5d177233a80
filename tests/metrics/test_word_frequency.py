"""Word F1 by frequency in the training data."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.core.errors import DataError
from heed.core.run_files import RunFiles
from heed.metrics import translation
from heed.metrics.word_frequency import FrequencyBand, WordCounts, by_frequency, unigram_f1

TRAINING = WordCounts("none", Counter({"a": 1000, "dog": 150, "cat": 12, "fox": 5, "owl": 4, "emu": 2, "yak": 1}))


def test_the_table_is_the_one_counted_by_hand():
    outputs = ["a dog a yak", "a zebu emu emu", "owl"]
    references = ["a dog a dog", "a yak zebu emu", "fox"]
    actual = {band.label: band for band in by_frequency(outputs, references, TRAINING)}
    assert {label: (b.num_reference, b.num_output, b.num_right) for label, b in actual.items()} == {
        "never": (1, 1, 1),  # zebu
        "once": (1, 1, 0),  # yak, each time in the wrong sentence
        "2–4": (1, 3, 1),  # emu is right once of twice, owl is wrong
        "5–9": (1, 0, 0),  # fox
        "10–99": (0, 0, 0),
        "100–999": (2, 1, 1),  # dog
        "1,000 or more": (3, 3, 3),  # a
    }
    assert (actual["2–4"].precision, actual["2–4"].recall, actual["2–4"].f1) == (1 / 3, 1.0, 0.5)
    assert (actual["10–99"].precision, actual["10–99"].recall, actual["10–99"].f1) == (0, 0, 0)


def test_f1_is_the_harmonic_mean_of_precision_and_recall():
    band = FrequencyBand(2, 4, num_reference=10, num_output=8, num_right=5)
    p, r = band.precision, band.recall
    assert (p, r, band.f1) == (5 / 8, 5 / 10, pytest.approx(2 * p * r / (p + r)))
    assert band.to_json() == {
        "rarest": 2, "commonest": 4, "num_reference": 10, "num_output": 8, "num_right": 5, "label": "2–4",
        "precision": p, "recall": r, "f1": band.f1,
    }  # fmt: skip


@pytest.mark.parametrize(("times", "label"), [(0, "never"), (1, "once"), (2, "2–4"), (4, "2–4"), (5, "5–9"),
                                              (9, "5–9"), (10, "10–99"), (99, "10–99"), (100, "100–999"),
                                              (999, "100–999"), (1000, "1,000 or more")])  # fmt: skip
def test_a_word_is_in_the_band_of_its_frequency(times, label):
    actual = by_frequency(["w"], ["w"], WordCounts("none", Counter({"w": times})))
    assert [band.label for band in actual if band.num_right] == [label]


words = st.lists(st.sampled_from(["a", "dog", "yak", "zebu", "emu"]), max_size=6).map(" ".join)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=5))
def test_the_bands_cover_every_word_and_perfect_output_has_f1_one(pairs):
    outputs, references = [list(side) for side in zip(*pairs, strict=True)]
    actual = by_frequency(outputs, references, TRAINING)
    assert sum(band.num_output for band in actual) == sum(len(line.split()) for line in outputs)
    assert sum(band.num_reference for band in actual) == sum(len(line.split()) for line in references)
    assert all(band.num_right <= min(band.num_output, band.num_reference) for band in actual)
    assert all(band.f1 in (0, 1) for band in by_frequency(references, references, TRAINING))


def test_rare_words_are_those_beyond_the_most_frequent_and_unseen_ones_are_rare_too():
    """Sennrich et al. 2016: rare is what is not among the 50,000 most frequent words of the training data."""
    outputs = ["a dog a yak", "a zebu emu emu", "owl"]
    references = ["a dog a dog", "a yak zebu emu", "fox"]
    actual = unigram_f1(outputs, references, TRAINING, num_common=3)  # a, dog, cat
    assert {kind: (m.num_reference, m.num_output, m.num_right) for kind, m in actual.items()} == {
        "all": (9, 9, 6),
        "rare": (4, 5, 2),  # yak and fox are wrong, emu right once of twice, zebu right
        "unseen": (1, 1, 1),
    }
    assert actual["rare"].f1 == 2 * 2 / (4 + 5)
    assert actual["all"].f1 == 2 * 6 / (9 + 9)
    everything, nothing = (unigram_f1(outputs, references, TRAINING, number) for number in (0, 1000))
    assert everything["rare"] == everything["all"]
    assert nothing["rare"] == nothing["unseen"]


def test_ties_in_frequency_do_not_depend_on_the_order_of_words():
    for words in ("b a", "a b"):
        counts = WordCounts("none", Counter(words.split()))
        assert unigram_f1(["a b"], ["b c"], counts, 1)["rare"].num_output == 1
        assert unigram_f1(["a"], ["a"], counts, 1)["rare"].num_output == 0


def test_words_are_split_as_by_bleu_and_case_counts():
    counts = WordCounts("13a")
    for line in ("Der Hund, der Hund.", "der Hund"):
        counts.add(line)
    assert counts.counts == {"Der": 1, "Hund": 3, ",": 1, "der": 2, ".": 1}


def test_a_missing_tokenizer_only_leaves_out_the_scores_by_frequency(tmp_path, monkeypatch, capsys):
    path = tmp_path / "words.json"
    path.write_text(json.dumps({"tokenizer": "ja-mecab", "counts": {"a": 2}}))
    monkeypatch.setattr(translation, "_installed", lambda code: False)
    assert WordCounts.read(RunFiles(tmp_path), path.name) is None
    assert "no scores by frequency: BLEU's tokenizer 'ja-mecab' needs the package" in capsys.readouterr().err


def test_counts_are_written_by_frequency_and_restored(tmp_path):
    path = tmp_path / "words.json"
    assert WordCounts.read(RunFiles(tmp_path), path.name) is None
    TRAINING.write(RunFiles(tmp_path), path.name)
    assert WordCounts.read(RunFiles(tmp_path), path.name) == TRAINING
    assert list(json.loads(path.read_text())["counts"])[:2] == ["a", "dog"]


@pytest.mark.parametrize("text", ["{", "[]", '{"counts": {}}', '{"tokenizer": "13a", "counts": 3}',
                                  '{"tokenizer": "13a", "counts": {"a": "b"}}'])  # fmt: skip
def test_damaged_counts_are_an_error(tmp_path, text):
    path = tmp_path / "words.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"words\.json is damaged .* Remove it"):
        WordCounts.read(RunFiles(tmp_path), path.name)
