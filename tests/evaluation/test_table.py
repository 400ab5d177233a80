"""Tables of evaluations for a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heed.core.errors import UsageError
from heed.evaluation.evaluation import Evaluation, ScoredSentence, compared, with_clean_scores
from heed.evaluation.leakage import Leakage
from heed.evaluation.table import columns, render_table
from heed.evaluation.test_set import HeldOut
from heed.metrics.classification import Accuracy, MacroF1
from heed.metrics.metric import Score
from heed.metrics.sentence_length import LengthBucket
from heed.metrics.significance import Comparison
from heed.metrics.word_frequency import FrequencyBand, WordMatches

TEST = HeldOut(("test.en", "test.de"), [("a", "b")] * 1000)
SIGNATURES = {"bleu": "nrefs:1|tok:13a", "chrf": "nrefs:1|nc:6", "ter": "nrefs:1|tok:tercom"}


def scores(bleu: float, chrf: float, ter: float) -> dict[str, Score]:
    """Scores with intervals of one to either side."""
    named = {"bleu": ("BLEU", bleu), "chrf": ("chrF2", chrf), "ter": ("TER", ter)}
    return {key: Score(name, v, SIGNATURES[key], v - 1, v + 1) for key, (name, v) in named.items()}


FIRST = Evaluation("runs/a", TEST, None, scores(38, 61.7, 46.02), {}, 0.981)
SECOND = Evaluation(
    "marian", TEST, None, scores(39.1, 62.3, 9.5), {}, 1.0,
    {"bleu": Comparison(1.1, 0.012, 0.015), "chrf": Comparison(0.6, 0.1, 0.12), "ter": Comparison(-12.5, 0.001, 1e-4)},
)  # fmt: skip


@pytest.mark.parametrize(("num_lines", "is_noted"), [(1, False), (2, True), (19, True), (20, False)])
def test_few_lines_are_noted_but_not_a_single_one_which_has_no_interval(num_lines: int, is_noted: bool) -> None:
    assert ("Fewer than 20 lines" in render_table([replace(FIRST, num_rows=num_lines)])) == is_noted


def test_several_systems_share_a_table_with_tests_below_each_and_signatures_once() -> None:
    text = render_table([FIRST, SECOND])
    assert text.startswith(
        "test.en and test.de, 1,000 lines\n"
        "\n"
        "                     BLEU                   chrF2                  TER                      length\n"
        "runs/a               38.00 [37.00, 39.00]   61.70 [60.70, 62.70]   46.02 [45.02, 47.02]     0.981\n"
        "marian               39.10 [38.10, 40.10]   62.30 [61.30, 63.30]   9.50 [8.50, 10.50]       1.000\n"
        "  against the first  +1.10 p 0.012 / 0.015  +0.60 p 0.100 / 0.120  -12.50 p 0.001 / 0.0001\n"
        "\n"
        "BLEU   nrefs:1|tok:13a\n"
        "chrF2  nrefs:1|nc:6\n"
        "TER    nrefs:1|tok:tercom\n"
        "\n"
        "p: the probability of a difference this large by chance alone, by paired bootstrap (Koehn 2004,\n"
    )


def test_a_single_system_has_no_tests() -> None:
    text = render_table([FIRST])
    assert "runs/a  38.00 [37.00, 39.00]" in text
    assert "Koehn" not in text
    assert "against" not in text
    assert text.count("nrefs:1") == 3


def test_leakage_is_reported_with_the_scores_of_the_other_lines() -> None:
    leakage = Leakage(1000, {"pair": 4, "src": 12, "tgt": 5}, 0, tuple(range(1, 14)), 1000)
    found = Evaluation("runs/a", TEST, None, scores(38, 61, 46), leakage=leakage, without_leaked=scores(37, 60, 47))
    text = render_table([found])
    assert (
        "leakage: 13 of 1,000 test lines (1.3 %) are in the training data of runs/a: "
        "4 as pairs, 12 by their source, 5 by their reference\n"
        "\n"
        "without those lines  BLEU                  chrF2                 TER\n"
        "runs/a               37.00 [36.00, 38.00]  60.00 [59.00, 61.00]  47.00 [46.00, 48.00]"
    ) in text


def test_a_test_set_that_was_trained_on_completely_is_reported() -> None:
    leakage = Leakage(1000, {"pair": 1000}, 0, tuple(range(1, 1001)), 1000)
    text = render_table([Evaluation("runs/a", TEST, None, scores(99, 99, 1), leakage=leakage)])
    assert "Every line that was compared was trained on" in text


def test_lines_too_short_to_be_compared_do_not_hide_that_all_others_were_trained_on() -> None:
    test = HeldOut(("test.txt",), [("a line that is long enough",), ("",), ("another long enough line",)])
    statistics = {"accuracy": Accuracy().statistics(["a", "b", "a"], ["a", "a", "a"])}
    leakage = Leakage(3, {"src": 2}, 0, (1, 3), 2)
    [alone] = with_clean_scores([Evaluation("run", test, None, {}, leakage=leakage, statistics=statistics)])
    assert not alone.without_leaked
    assert "Every line that was compared was trained on" in render_table([replace(alone, scores=scores(9, 9, 1))])
    [some] = with_clean_scores([replace(alone, leakage=replace(leakage, lines=(1,)))])
    assert some.num_clean == 2 and some.without_leaked


def test_one_trained_line_without_scores_of_the_others_is_not_all_lines() -> None:
    leakage = Leakage(1000, {"tgt": 1}, 0, (5,), 1000)
    text = render_table([Evaluation("runs/a", TEST, None, scores(99, 99, 1), leakage=leakage)])
    assert "1 of 1,000" in text and "trained on" not in text


def test_lines_that_any_run_was_trained_on_are_left_out_for_all() -> None:
    statistics = {"accuracy": Accuracy().statistics(["a", "b", "a", "b"], ["a", "a", "a", "b"])}
    test = HeldOut(("test.tsv",), [(str(n), "a") for n in range(4)])
    seen: list[tuple[int, ...]] = [(1, 2), (4,)]
    runs = [
        Evaluation("run", test, None, {}, leakage=Leakage(4, {"src": 1}, 0, lines, 4), statistics=statistics)
        for lines in seen
    ]
    both = with_clean_scores(runs)
    assert [(each.num_clean, each.without_leaked["accuracy"].value) for each in both] == [(1, 100)] * 2
    [alone] = with_clean_scores(runs[:1])
    assert (alone.num_clean, alone.without_leaked["accuracy"].value) == (2, 100)
    every = replace(runs[1], leakage=Leakage(4, {"src": 4}, 0, (1, 2, 3, 4), 4), without_leaked={"accuracy": None})  # type: ignore[dict-item]
    assert [(each.num_clean, each.without_leaked) for each in with_clean_scores([runs[0], every])] == [(0, {})] * 2


def test_runs_that_answer_differently_are_not_compared() -> None:
    other = replace(FIRST, system="runs/b", scores={"bleu": FIRST.scores["bleu"]})
    with pytest.raises(UsageError, match="runs/b cannot be compared with runs/a, because they answer differently"):
        compared([FIRST, other])
    with pytest.raises(UsageError, match="on 0 lines for the first, and BLEU, chrF2, TER on 9 lines for this one"):
        compared([FIRST, replace(FIRST, num_rows=9)])


def test_runs_whose_right_answers_are_in_other_columns_are_not_compared() -> None:
    statistics = {"macro_f1": MacroF1().statistics(["a", "b", "a"], ["a", "b", "a"])}
    test = HeldOut(("test.csv",), [("x", "a"), ("y", "b"), ("z", "a")])
    first = Evaluation("runs/a", test, None, {}, num_rows=3, statistics=statistics)
    other = HeldOut(("test.csv",), [("x", "1"), ("y", "2"), ("z", "3")])
    with pytest.raises(UsageError, match="runs/b cannot be compared with runs/a, because the right answers differ"):
        compared([first, replace(first, system="runs/b", test=other)])
    longer = HeldOut(("test.csv",), [("x of another column", "a"), ("y", "b"), ("z", "a")])
    [_, second] = compared([first, replace(first, system="runs/b", test=longer)])
    assert second.against_first.keys() == {"macro_f1"}


def test_buckets_and_bands_have_a_row_for_each_system() -> None:
    bucket = LengthBucket(6, 10, "words", 840, {"bleu": FIRST.scores["bleu"], "chrf": FIRST.scores["chrf"]})
    bands = [
        FrequencyBand(0, 0, num_reference=312, num_output=205, num_right=85),
        FrequencyBand(1, 1, num_reference=0, num_output=0, num_right=0),
        FrequencyBand(1000, None, num_reference=9000, num_output=9100, num_right=8000),
    ]
    both = [
        Evaluation(name, TEST, None, FIRST.scores, by_length=[bucket], by_frequency=bands) for name in ("runs/a", "b")
    ]
    assert render_table(both, analysis=True).endswith(
        "source, words  lines          BLEU                  chrF2\n"
        "6–10             840  runs/a  38.00 [37.00, 39.00]  61.70 [60.70, 62.70]\n"
        "                      b       38.00 [37.00, 39.00]  61.70 [60.70, 62.70]\n"
        "\n"
        "word in training          in references  in output  correct  precision  recall     F1\n"
        "never             runs/a            312        205       85      0.415   0.272  0.329\n"
        "                  b                 312        205       85      0.415   0.272  0.329\n"
        "1,000 or more     runs/a          9,000      9,100    8,000      0.879   0.889  0.884\n"
        "                  b               9,000      9,100    8,000      0.879   0.889  0.884"
    )
    assert "6–10" not in render_table(both)


def test_f1_has_a_row_for_each_system_and_a_column_for_each_kind_of_word() -> None:
    f1 = {
        "all": WordMatches(num_reference=9312, num_output=9305, num_right=8085),
        "rare": WordMatches(num_reference=312, num_output=205, num_right=85),
    }
    both = [
        Evaluation(name, TEST, None, FIRST.scores, unigram_f1=f1, words_as="words as split by tok:13a")
        for name in ("runs/a", "b")
    ]
    assert render_table(both, analysis=True).endswith(
        "unigram F1  all words (9,312)  rare words (312)\n"
        "runs/a                  0.869             0.329\n"
        "b                       0.869             0.329\n"
        "words as split by tok:13a"
    )
    assert "unigram F1" not in render_table(both)


def test_worst_lines_are_shown_with_their_links() -> None:
    worst = [ScoredSentence(7, 3.2, "Two dogs", "Zwei Katzen", "Zwei Hunde", "0-0 1-1", "Two=Zwei dogs=Katzen")]
    text = render_table([Evaluation("runs/a", TEST, None, FIRST.scores, worst=worst)])
    assert text.endswith(
        "worst lines of runs/a by chrF2\n"
        "  line 7, chrF2 3.20\n"
        "    source     Two dogs\n"
        "    output     Zwei Katzen\n"
        "    reference  Zwei Hunde\n"
        "    links      Two=Zwei dogs=Katzen"
    )
    pairs = replace(TEST, unit="pair")  # of a table, whose first line may hold names
    assert "\n  pair 7, chrF2 3.20\n" in render_table([Evaluation("runs/a", pairs, None, FIRST.scores, worst=worst)])


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert columns([["a", "number"], ["long name", "7"]], right=[1]) == "a          number\nlong name       7"
    assert (
        columns([["", "数"], ["モデル一号", "7"], ["मॉडल", "10"]], right=[1])
        == "            数\nモデル一号   7\nमॉडल         10"
    )
