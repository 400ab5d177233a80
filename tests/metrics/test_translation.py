"""BLEU, chrF and TER equal those of sacreBLEU."""

import math

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from noisy_systems import corpus
from sacrebleu.metrics import BLEU, CHRF, TER

from heed.core.errors import DataError, UsageError
from heed.metrics import output_metric, score_outputs, sentence_scores, translation
from heed.metrics.translation import bleu_tokenizer, length_ratio, word_cutter

ORACLES = {
    "bleu": lambda: BLEU(),
    "chrf": lambda: CHRF(),
    "chrf++": lambda: CHRF(word_order=2),
    "ter": lambda: TER(),
}
OUTPUT_METRICS = [*ORACLES]


@pytest.fixture(autouse=True)
def _library_defaults(monkeypatch):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    translation._warn_once.cache_clear()


# Known answers


def test_bleu_of_two_sentences_equals_the_formula_by_hand():
    hypotheses = ["the small dog runs in the green park", "a man sleeps"]
    references = ["the small dog runs through the green park", "a man is asleep"]
    # matched / all n-grams, first plus second sentence
    precisions = [(7 + 2) / (8 + 3), (5 + 1) / (7 + 2), (3 + 0) / (6 + 1), (1 + 0) / (5 + 0)]
    expected = 100 * math.exp(1 - 12 / 11) * math.prod(precisions) ** (1 / 4)
    assert output_metric("bleu").score(hypotheses, references).value == pytest.approx(expected, rel=1e-12)


def test_ter_counts_a_moved_run_of_words_as_one_edit():
    hypotheses, references = ["park in the", "a man sleeps"], ["in the park", "a man is asleep"]
    assert output_metric("ter").score(hypotheses, references).value == pytest.approx(100 * (1 + 2) / (3 + 4))


def test_chrf_averages_over_the_orders_that_the_text_has():
    # one of two characters, none of one pair of characters
    assert output_metric("chrf").score(["ab"], ["ac"]).value == pytest.approx(25)


@pytest.mark.parametrize("name", OUTPUT_METRICS)
def test_a_perfect_translation_gets_the_best_score(name):
    references, _, _ = corpus()
    metric = output_metric(name)
    assert metric.score(references, references).value == pytest.approx(100 if metric.higher_is_better else 0)


# sacreBLEU as the oracle


@pytest.mark.parametrize("name", OUTPUT_METRICS)
def test_corpus_scores_and_signatures_are_those_of_sacrebleu(name):
    references, hypotheses, _ = corpus()
    oracle = ORACLES[name]()
    expected = oracle.corpus_score(hypotheses, [references])
    score = output_metric(name).score(hypotheses, references)
    assert score.value == expected.score
    assert score.name == expected.name
    assert score.signature == oracle.get_signature().format()
    assert score.low is None and score.high is None


@pytest.mark.parametrize("name", OUTPUT_METRICS)
def test_intervals_are_as_wide_as_those_of_sacrebleu(name):
    references, hypotheses, _ = corpus()
    oracle = ORACLES[name]()
    expected = oracle.corpus_score(hypotheses, [references], n_bootstrap=200)
    score = output_metric(name).score(hypotheses, references, intervals=200)
    assert (score.high - score.low) / 2 == pytest.approx(expected._ci, rel=1e-4)  # the library sums in float32
    assert score.low < score.value < score.high
    assert score.signature == oracle.get_signature().format()
    assert "bs:200|seed:12345" in score.signature


@pytest.mark.parametrize(
    ("name", "oracle"),
    [("bleu", sacrebleu.sentence_bleu), ("chrf", sacrebleu.sentence_chrf), ("ter", sacrebleu.sentence_ter)],
)
def test_sentence_scores_are_those_of_sacrebleu(name, oracle):
    references, hypotheses, _ = corpus()
    expected = [
        oracle(hypothesis, [reference]).score for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    assert sentence_scores(name, hypotheses, references) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), min_size=1, max_size=4))
def test_scores_of_any_text_are_those_of_sacrebleu(pairs):
    hypotheses, references = [list(side) for side in zip(*pairs, strict=True)]
    for name, oracle in ORACLES.items():
        score = output_metric(name).score(hypotheses, references)
        assert score.value == oracle().corpus_score(hypotheses, [references]).score


# Properties


def test_scoring_twice_gives_the_same_scores():
    references, hypotheses, _ = corpus()
    first = score_outputs(hypotheses, references, "de", intervals=50)
    assert first == score_outputs(hypotheses, references, "de", intervals=50)
    assert [score.name for score in first] == ["BLEU", "chrF2", "TER"]


def test_the_environment_does_not_change_intervals(monkeypatch):
    references, hypotheses, _ = corpus()
    first = score_outputs(hypotheses, references, names=["chrf"], intervals=50)
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    assert score_outputs(hypotheses, references, names=["chrf"], intervals=50) == first


def test_length_ratio_is_that_of_bleu():
    references, hypotheses, _ = corpus()
    shorter = [line[: len(line) // 2] for line in hypotheses]
    expected = BLEU().corpus_score(shorter, [references])
    assert length_ratio(shorter, references) == expected.ratio
    assert length_ratio(["a,b"], ["a , b c"]) == 3 / 4
    assert length_ratio(["a,b"], ["a , b c"], tokenised=True) == 1 / 4


# Languages


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        (None, "13a"),
        ("de", "13a"),
        ("zh", "zh"),
        ("zh-CN", "zh"),
        ("zho_Hans", "zh"),
        ("ZH", "zh"),
        ("th", "char"),
        ("khm_Khmr", "char"),
    ],
)
def test_the_tokenizer_of_bleu_follows_the_language(language, tokenizer):
    assert bleu_tokenizer(language) == tokenizer
    assert f"tok:{tokenizer}|" in output_metric("bleu", language).score(["他来了"], ["他来了"]).signature


def test_tokenised_text_is_left_as_it_is():
    assert bleu_tokenizer("ja", tokenised=True) == "none"
    score = output_metric("bleu", "de", tokenised=True).score(["a ,b c d"], ["a ,b c d"])
    assert "tok:none" in score.signature


@pytest.mark.parametrize(("language", "tokenizer"), [("ja", "ja-mecab"), ("jpn_Jpan", "ja-mecab"), ("ko", "ko-mecab")])
def test_japanese_and_korean_are_split_into_words_if_the_package_is_installed(monkeypatch, language, tokenizer):
    monkeypatch.setattr(translation, "find_spec", lambda package: package)
    assert bleu_tokenizer(language) == tokenizer


def test_without_the_package_characters_are_counted_with_one_warning(monkeypatch, capsys):
    monkeypatch.setattr(translation, "find_spec", lambda package: None)
    assert [bleu_tokenizer("ja"), bleu_tokenizer("ja")] == ["char", "char"]
    assert capsys.readouterr().err.count("sacrebleu[ja]") == 1


def test_ter_splits_japanese_and_chinese_into_characters():
    score = output_metric("ter", "ja").score(["猫が好き"], ["犬が好き"])
    assert score.value == 25
    assert "asian:yes" in score.signature


# Refusals


@pytest.mark.parametrize(("hypotheses", "references"), [([], []), (["a"], ["a", "b"]), (["a"], [])])
def test_missing_lines_are_an_error(hypotheses, references):
    for score in (score_outputs, length_ratio):
        with pytest.raises(DataError):
            score(hypotheses, references)
    with pytest.raises(DataError):
        sentence_scores("chrf", hypotheses, references)


def test_different_lengths_name_both_numbers():
    with pytest.raises(DataError, match="2 hypotheses for 1,000 references"):
        score_outputs(["a", "b"], ["c"] * 1000)


def test_an_unknown_metric_is_an_error_that_lists_the_metrics():
    with pytest.raises(UsageError, match=r"'blue'.*bleu, chrf, chrf\+\+, ter"):
        score_outputs(["a"], ["a"], names=["blue"])


def test_selected_statistics_score_as_the_selected_text():
    references, hypotheses, _ = corpus()
    short = np.array([len(line.split()) < 6 for line in references])
    part = [[line for line, chosen in zip(lines, short, strict=True) if chosen] for lines in (hypotheses, references)]
    for name in OUTPUT_METRICS:
        metric = output_metric(name)
        actual = metric.statistics(hypotheses, references)
        assert actual.select(short).score(100) == metric.score(*part, intervals=100)
        assert actual.score() == metric.score(hypotheses, references)  # the draws leave no trace in the signature
        assert actual.sentence_scores() == metric.sentence_scores(hypotheses, references)


def test_words_are_split_as_by_bleu():
    assert word_cutter("13a")('Er sagt: "Hund, 3.5 %."') == ["Er", "sagt", ":", '"', "Hund", ",", "3.5", "%", ".", '"']
    assert word_cutter("none")("a ,b  c\n") == ["a", ",b", "c"]
    assert word_cutter("char")("ab") == ["a", "b"]


@pytest.mark.parametrize("tokenizer", ["flores200", "spm", "", "13A", "ja-mecab"])
def test_an_unsupported_or_missing_tokenizer_is_an_error(monkeypatch, tokenizer):
    monkeypatch.setattr(translation, "find_spec", lambda package: None)
    with pytest.raises(UsageError, match="needs the package sacrebleu"):
        word_cutter(tokenizer)


def test_references_without_words_have_no_length_ratio():
    with pytest.raises(DataError, match="no words"):
        length_ratio(["a"], [""])


def test_references_without_spaces_cause_a_warning(capsys):
    lines = ["彼は東京の大学で日本の歴史を勉強している学生です。", "私は昨日の夜に友達と駅の近くで映画を見ました。"]
    for language, warned in [("", True), ("xx", True), ("ja", False), ("Japanese", False)]:
        translation._warn_once.cache_clear()
        score_outputs(lines, lines, language, names=["bleu"], intervals=0)
        assert ("no spaces between words" in capsys.readouterr().err) == warned


def test_ter_warns_of_references_without_spaces(capsys):
    lines = ["ฉันชอบแมวมากและเลี้ยงไว้สองตัวที่บ้าน"]
    for language, tokenised, warned in [("th", False, True), ("th", True, False), ("de", False, False)]:
        translation._warn_once.cache_clear()
        score_outputs(lines, lines, language, tokenised=tokenised, intervals=0)
        assert ("TER counts the text between spaces" in capsys.readouterr().err) == warned


@pytest.mark.parametrize(
    ("language", "tokenizer"), [("Chinese", "zh"), ("chi", "zh"), ("bur", "char"), ("zh-CN", "zh")]
)
def test_names_and_other_codes_of_a_language_select_the_same_tokenizer(language, tokenizer):
    assert bleu_tokenizer(language) == tokenizer


def test_tokenised_references_cause_one_warning(capsys):
    for _ in range(2):
        score_outputs(["a b ."], ["a b ."], names=["chrf"], intervals=0)
    assert capsys.readouterr().err.count("seem to be tokenised") == 1
    score_outputs(["a b."], ["a b."], names=["chrf"], intervals=0)
    assert capsys.readouterr().err == ""
