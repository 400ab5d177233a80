"""A line's output depends on that line alone, and its score is the score of that text."""

from __future__ import annotations

import functools
import random

import pytest
import torch
from hashed_model import HashedModel
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from random_models import EOS, half_trained, model_of

from heed.core.errors import UsageError
from heed.decoding import scoring
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.inference import translator as translator_module
from heed.inference.translator import ModelTranslator
from heed.nn.contract import Autoregressive
from heed.text.normalise import Normaliser
from heed.text.tokenizers.byte_level import Byte
from heed.text.tokenizers.symbols import CharBigram, Word

WORDS = Word("abcdefgh")  # with the four special pieces: the twelve of the random models
DICE = random.Random(1)
LINES = [" ".join(DICE.choices("abcdefgh", k=length)) for length in (3, 1, 7, 2, 5, 3, 8, 1, 4, 6)]

GREEDY = SearchOptions(beam_size=1, max_tokens=12)
BEAM = SearchOptions(beam_size=3, nbest=2, max_tokens=12)
SAMPLES = SearchOptions(sample=True, nbest=2, temperature=1.5, max_tokens=12)
SEARCHES = {
    "greedy": GREEDY,
    "beam": BEAM,
    "samples": SAMPLES,
    "ruled": BEAM.model_copy(update={"no_repeat": 2, "ban": ("a", "b c"), "min_ratio": 0.7, "max_ratio": 1.5}),
    "coverage": BEAM.model_copy(update={"coverage_penalty": 0.4}),
    "diverse": SearchOptions(beam_size=4, nbest=2, diversity=0.7, max_tokens=12),
    "mbr": BEAM.model_copy(update={"mbr": "chrf", "candidates": 6}),
    "mbr of samples": SAMPLES.model_copy(update={"mbr": "bleu", "candidates": 5}),
}
NETWORKS = ("transformer", "transformer, pre-norm", "rnn_attention")
CASES = [
    *((network, search) for network in NETWORKS for search in ("greedy", "beam", "samples")),
    *(("transformer", search) for search in list(SEARCHES)[3:]),
    ("rnn_attention", "coverage"),
]
every_case = pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param(
            network,
            SEARCHES[search],
            id=f"{network}, {search}",
            marks=[pytest.mark.slow] if network == "transformer, pre-norm" else [],
        )
        for network, search in CASES
    ],
)


def translator_of(model: Autoregressive) -> ModelTranslator:
    """From words to words."""
    return ModelTranslator(model, WORDS, WORDS, Normaliser())


@functools.cache
def network(name: str) -> ModelTranslator:
    """A partly trained model."""
    return translator_of(half_trained(name))


def language_model() -> ModelTranslator:
    """The count-based model."""
    return ModelTranslator(model_of("bigram"), None, WORDS, Normaliser())


def texts(hypotheses: list[Hypothesis]) -> list[tuple[str, ...]]:
    """All texts of each line."""
    return [(best.text, *(other.text for other in best.alternatives)) for best in hypotheses]


@functools.cache
def each_alone(name: str, options: SearchOptions) -> dict[str, tuple[str, ...]]:
    """The outputs of each line translated alone."""
    return {line: texts(network(name).translate([line], options))[0] for line in LINES}


@every_case
@settings(max_examples=2, phases=[Phase.generate])
@given(lines=st.lists(st.sampled_from(LINES), min_size=1, max_size=12), batch_size=st.integers(1, 12))
def test_a_line_has_the_same_text_alone_and_in_any_batch_and_order(
    name: str, options: SearchOptions, lines: list[str], batch_size: int
) -> None:
    options = options.model_copy(update={"batch_size": batch_size})
    alone = each_alone(name, options.model_copy(update={"batch_size": 64}))
    assert len({len(outputs[0].split()) for outputs in alone.values()}) > 2, "outputs vary"
    assert len({outputs[0] for outputs in alone.values()}) > 5, "outputs vary"
    assert texts(network(name).translate(lines, options)) == [alone[line] for line in lines]


@every_case
def test_the_score_of_an_output_is_its_forced_score(name: str, options: SearchOptions) -> None:
    lines = list(dict.fromkeys(LINES))
    actual = network(name).translate(lines, options)
    finished = [
        (line, h) for line, best in zip(lines, actual, strict=True) for h in (best, *best.alternatives) if h.finished
    ]
    assert len(finished) > 5
    scores = network(name).score([h.text for _, h in finished], [line for line, _ in finished])
    for (_, h), score in zip(finished, scores, strict=True):
        assert score.ids == (*h.ids, EOS)
        assert score.log_prob == pytest.approx(h.log_prob, abs=1e-4)
        assert list(score.log_probs) == pytest.approx(list(h.token_log_probs), abs=1e-4)


def test_alternatives_are_sorted_and_do_not_repeat_the_best() -> None:
    for best in network("transformer").translate(LINES, BEAM.model_copy(update={"nbest": 3})):
        ranked = [best, *best.alternatives]
        assert len({h.ids for h in ranked}) == 3
        for kind in (True, False):
            scores = [h.score for h in ranked if h.finished == kind]
            assert scores == sorted(scores, reverse=True)


def test_several_tokenizations_of_one_text_are_one_alternative() -> None:
    pieces = CharBigram(["ab", "a@@", "b", "c"])
    translator = ModelTranslator(HashedModel(8), pieces, pieces, Normaliser())
    [ab, a, b, c] = [pieces.vocabulary.id(piece) for piece in ("ab", "a@@", "b", "c")]
    actual = [Hypothesis((ab,), -1.0, -1.0), Hypothesis((a, b), -2.0, -2.0), Hypothesis((c,), -3.0, -3.0)]
    assert [h.text for h in translator.ranked(actual, BEAM)] == ["ab", "c"]
    assert [h.text for h in translator.ranked(actual, SAMPLES)] == ["ab", "ab", "c"]


def test_lines_of_white_space_are_returned_unchanged_in_their_place() -> None:
    translator = translator_of(HashedModel(12))
    actual = translator.translate(["", "a b", " \t ", "c", "\u3000"], GREEDY)
    outputs = [h.text for h in actual]
    assert outputs[::2] == ["", " \t ", "\u3000"]
    assert outputs[1::2] == [translator.translate([line], GREEDY)[0].text for line in ("a b", "c")]
    assert all(h.ids == () and h.log_prob == 0.0 and h.finished for h in actual[::2])
    assert translator.translate([], GREEDY) == []


def test_white_space_is_returned_unchanged_even_if_it_has_tokens() -> None:
    translator = ModelTranslator(HashedModel(260), Byte(), Byte(), Normaliser())
    actual = translator.translate([" \t ", "a"], GREEDY)
    assert (actual[0].text, actual[0].ids) == (" \t ", ())
    assert actual[1].ids


def test_a_line_that_normalisation_empties_is_returned_unchanged() -> None:
    [actual] = translator_of(HashedModel(12)).translate(["\u0007"], GREEDY)
    assert actual.text == "\u0007"


def test_equal_lines_are_translated_once() -> None:
    model = HashedModel(12)
    actual = translator_of(model).translate(["a b", "c", "a b", " a  b "], BEAM)
    assert model.advanced[0] == (2 * 3, 1)
    assert texts(actual)[0] == texts(actual)[2] == texts(actual)[3] != texts(actual)[1]


def test_at_most_batch_size_lines_are_searched_at_once() -> None:
    model = HashedModel(12)
    translator_of(model).translate(["a", "b", "c", "d", "e"], GREEDY.model_copy(update={"batch_size": 2}))
    assert max(rows for rows, _ in model.advanced) == 2


def test_long_lines_come_in_smaller_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 60 positions with padding and the end: three beams of a line of 19 words, or of 20 lines of none."""
    monkeypatch.setattr(translator_module, "MAX_POSITIONS", 60)
    model = HashedModel(12)
    lines = ["a " * 19, "b " * 19, "a", "b", "c"]
    first = len(model.advanced)
    translator_of(model).translate(lines, BEAM)
    widest = [rows for rows, _ in model.advanced[first:]]
    assert widest[0] == 3
    assert max(widest) == 9, "the three short lines together"


def test_a_huge_line_does_not_affect_short_ones() -> None:
    huge = " ".join(DICE.choices("abcdefgh", k=1500))
    translator = network("transformer")
    options = BEAM.model_copy(update={"max_tokens": 5})
    alone = translator.translate(["a b c"], options)
    actual = translator.translate(["a b c", huge], options)
    assert texts(actual)[:1] == texts(alone)
    assert len(actual[1].ids) <= 5


def test_no_output_exceeds_its_limit_or_contains_a_special_piece() -> None:
    options = SearchOptions(beam_size=2, max_tokens=3, min_tokens=3, nbest=2)
    for best in translator_of(HashedModel(12)).translate(LINES, options):
        for h in (best, *best.alternatives):
            assert len(h.ids) == 3
            assert min(h.ids) > 3, "padding, begin, end and unknown"


def test_scores_are_in_the_order_of_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = network("transformer")
    expected = [translator.score([tgt], [src])[0] for src, tgt in zip(LINES, reversed(LINES), strict=True)]
    monkeypatch.setattr(scoring, "MAX_SCORED_ROWS", 3)
    monkeypatch.setattr(scoring, "MAX_SCORED_POSITIONS", 16)
    for score, alone in zip(translator.score(LINES[::-1], LINES), expected, strict=True):
        assert score.ids == alone.ids
        assert list(score.log_probs) == pytest.approx(list(alone.log_probs), abs=1e-5)


def test_long_texts_are_scored_in_smaller_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "MAX_SCORED_POSITIONS", 16)
    model = HashedModel(12)
    translator_of(model).score(["a", "a " * 20, "a b c", "a b", "c d"], ["a", "b", "a b c d e", "a", "c"])
    # With the end: 21 alone; 6 (its source) with 4 and 3 would be 18, so two of them; then 3 and 2.
    assert model.advanced == [(1, 21), (2, 4), (2, 3)]


def test_an_empty_text_has_the_score_of_its_end() -> None:
    [score] = language_model().score([""])
    assert score.ids == (EOS,)
    features, _ = language_model().model.advance(torch.tensor([[1]]), language_model().model.start(None))
    assert score.log_prob == pytest.approx(language_model().model.head.log_probs(features)[0, 0, EOS].item())


def test_a_language_model_continues_a_prompt() -> None:
    """Samples do not repeat the prompt, and depend on it."""
    options = SearchOptions(sample=True, nbest=3, max_tokens=8, seed=4)
    translator = language_model()
    first, second = translator.generate(["a b", "c"], options)
    assert len(first) == len(second) == 3
    for prompt, hypotheses in (("a b", first), ("c", second)):
        for h in hypotheses:
            assert len(h.ids) <= 8
            whole = translator.score([f"{prompt} {h.text}".strip()])[0]
            prompt_length = len(prompt.split())
            steps = whole.log_probs[prompt_length : prompt_length + len(h.token_log_probs)]
            assert list(h.token_log_probs) == pytest.approx(list(steps), abs=1e-5)
    assert translator.generate(["a b"], options)[0] == first
    other_seed = options.model_copy(update={"seed": 5})
    assert translator.generate(["a b"], other_seed)[0] != first


def test_a_language_model_can_be_searched_for_its_likeliest_text() -> None:
    [[best]] = language_model().generate([""], SearchOptions(beam_size=200, max_tokens=5, length_penalty=0.0))
    drawn = language_model().generate([""], SearchOptions(sample=True, nbest=50, max_tokens=5))[0]
    assert best.log_prob >= max(h.log_prob for h in drawn if h.finished) - 1e-5


def test_a_method_that_a_model_does_not_support_is_an_error() -> None:
    with pytest.raises(ValueError, match="has no source to translate"):
        language_model().translate(["a"], GREEDY)
    with pytest.raises(ValueError, match="needs a source"):
        network("transformer").score(["a"])
    with pytest.raises(ValueError, match="needs a model with a source"):
        language_model().trace("a", "b")


@pytest.mark.parametrize("options", [GREEDY, BEAM, SAMPLES], ids=["greedy", "beam", "samples"])
def test_if_no_token_is_possible_the_hypothesis_is_cut_off(options: SearchOptions) -> None:
    """No word twice, no end before ten words, and there are eight."""
    options = options.model_copy(update={"no_repeat": 1, "min_tokens": 10, "max_tokens": 20})
    for best in translator_of(HashedModel(12)).translate(["a b", "c"], options):
        assert sorted(best.text.split()) == list("abcdefgh")
        assert not best.finished
        assert len(best.token_log_probs) == 8
        assert best.log_prob > float("-inf")


def test_a_coverage_penalty_needs_a_model_that_attends_to_its_source() -> None:
    with pytest.raises(UsageError, match="this model has no attention to its source"):
        translator_of(HashedModel(12)).translate(["a"], BEAM.model_copy(update={"coverage_penalty": 0.2}))
