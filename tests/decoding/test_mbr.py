"""Minimum Bayes risk chooses the output with the highest expected utility."""

from __future__ import annotations

import math

import pytest
from sacrebleu import sentence_bleu, sentence_chrf
from scripted import ScriptedModel

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.decoding.ranking import minimum_bayes_risk
from heed.inference.translator import ModelTranslator
from heed.text.normalise import Normaliser
from heed.text.tokenizers.symbols import Word

TEXTS = ["the dog runs home", "a dog runs home", "the dog walks home", "two cats", "the dog runs home"]


def hypotheses(log_probs: list[float]) -> list[Hypothesis]:
    """TEXTS with these log-probabilities."""
    return [Hypothesis((), log_prob, log_prob, text=text) for text, log_prob in zip(TEXTS, log_probs, strict=True)]


@pytest.mark.parametrize("metric", ["chrf", "bleu"])
@pytest.mark.parametrize("drawn", [True, False])
def test_the_utility_is_the_weighted_mean_over_all_as_references(metric: str, drawn: bool) -> None:
    log_probs = [-2.0, -1.5, -3.0, -1.0, -2.0]
    actual = minimum_bayes_risk(hypotheses(log_probs), metric, drawn)
    weights = [0.2] * 5 if drawn else [math.exp(x) / sum(map(math.exp, log_probs)) for x in log_probs]

    def utility(text: str) -> float:
        measure = sentence_chrf if metric == "chrf" else sentence_bleu
        return sum(w * measure(text, [ref]).score for w, ref in zip(weights, TEXTS, strict=True))

    expected = sorted(set(TEXTS), key=utility, reverse=True)
    assert [h.text for h in actual] == expected
    assert [h.score for h in actual] == pytest.approx([utility(text) for text in expected])
    assert all(h.log_prob == log_probs[TEXTS.index(h.text)] for h in actual)


def test_a_sample_drawn_twice_counts_twice() -> None:
    few = [Hypothesis((), -1.0, 0.0, text=text) for text in ("a b c d", "e f g h")]
    assert minimum_bayes_risk([*few, few[1]], "chrf", sampled=True)[0].text == "e f g h"
    assert minimum_bayes_risk([*few, few[0]], "chrf", sampled=True)[0].text == "a b c d"


def test_of_equal_texts_the_likelier_is_kept() -> None:
    [actual] = minimum_bayes_risk(
        [Hypothesis((1,), -3.0, 0.0, text="a"), Hypothesis((2,), -1.0, 0.0, text="a")], "chrf", False
    )
    assert (actual.ids, actual.log_prob) == ((2,), -1.0)


def test_texts_that_differ_in_spaces_are_equal() -> None:
    texts = [("a b c d", -2.0), ("e f g h", -1.9), ("e f g h ", -2.5), (" e f  g h", -2.5)]
    actual = minimum_bayes_risk([Hypothesis((), at, 0.0, text=text) for text, at in texts], "bleu", False)
    assert [(h.text, h.log_prob) for h in actual] == [("e f g h", -1.9), ("a b c d", -2.0)]


@pytest.mark.parametrize("drawn", [True, False])
def test_an_unfinished_hypothesis_is_chosen_only_if_none_finished(drawn: bool) -> None:
    cut = [
        Hypothesis((), log_prob, 0.0, text=text, finished=False) for text, log_prob in (("a b c", -1.0), ("a b", -2.0))
    ]
    ended = [Hypothesis((), -9.0, 0.0, text="x y"), Hypothesis((), -8.0, 0.0, text="a b", token_log_probs=(-8.0,))]
    actual = minimum_bayes_risk([*cut, *ended], "chrf", drawn)
    assert [(h.text, h.finished) for h in actual] == [("a b", True), ("x y", True), ("a b c", False)]
    assert actual[0].token_log_probs == (-8.0,), "of equal texts the finished one"
    assert [h.text for h in minimum_bayes_risk(cut, "chrf", drawn)] in (["a b c", "a b"], ["a b", "a b c"])


def test_an_unfinished_hypothesis_is_not_a_reference_for_a_beam() -> None:
    cut = Hypothesis((), -0.1, 0.0, text="a b c d", finished=False)
    ended = [Hypothesis((), -3.0, 0.0, text="a b c e"), *[Hypothesis((), -2.0, 0.0, text="x y z")] * 2]
    assert minimum_bayes_risk([cut, *ended], "chrf", False)[0].text == "x y z"


WORDS = Word("abcdefgh")
LETTERS = WORDS.encode(["a b c d e f g h"])[0]
A, B, C, D, E, F, G, H = LETTERS
SCRIPT = {(A,): {(H, H): 0.3, (A, B, C, D): 0.27, (A, B, C, E): 0.23, (A, B, C, F): 0.2}}


def test_many_similar_hypotheses_outrank_a_likelier_one() -> None:
    translator = ModelTranslator(ScriptedModel(12, SCRIPT), WORDS, WORDS, Normaliser())
    plain = SearchOptions(beam_size=4, length_penalty=0.0)
    assert translator.translate(["a"], plain)[0].text == "h h"
    voted = SearchOptions(beam_size=4, length_penalty=0.0, mbr="chrf", candidates=4, nbest=3)
    [best] = translator.translate(["a"], voted)
    assert best.text == "a b c d"
    assert len(best.alternatives) == 2
    assert best.score > best.alternatives[0].score > best.alternatives[1].score
    drawn = SearchOptions(sample=True, mbr="chrf", candidates=400, seed=3)
    [voted_for] = translator.translate(["a"], drawn)
    assert voted_for.text.startswith("a b c")
    assert voted_for.alternatives == ()
