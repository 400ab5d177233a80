"""Ensembles are means of their members, and shallow fusion is a weighted sum."""

from __future__ import annotations

import math

import pytest
import torch
from random_models import EOS, half_trained, model_of, random_images, random_source, random_targets

from heed.decoding.options import SearchOptions
from heed.decoding.scoring import score_rows
from heed.inference.translator import ModelTranslator
from heed.models.ensemble import Ensemble, ShallowFusion
from heed.nn.contract import Trace
from heed.text.normalise import Normaliser
from heed.text.tokenizers.symbols import Word

MEMBERS = ("transformer", "rnn_attention", "transformer, pre-norm")
WORDS = Word("abcdefgh")
LINES = ["a b c", "d", "e f g h a", "b b"]


@torch.no_grad()
def log_probs_of(model, source, ids):
    """`[B, T, V]`"""
    features, _ = model.advance(ids, model.start(source, 2))
    return model.head.log_probs(features)


@torch.no_grad()
def test_probabilities_are_averaged_rather_than_logarithms() -> None:
    source, ids = random_source([4, 6]), random_targets(4, 5)
    members = [model_of(name, seed) for seed, name in enumerate(MEMBERS)]
    expected = torch.stack([log_probs_of(member, source, ids).exp() for member in members]).mean(0).log()
    torch.testing.assert_close(log_probs_of(Ensemble(members), source, ids), expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_models_of_images_are_combined_too() -> None:
    source, ids = random_images(2), random_targets(4, 5)
    members = [model_of("show_attend_tell"), model_of("image_transformer", 1)]
    expected = torch.stack([log_probs_of(member, source, ids).exp() for member in members]).mean(0).log()
    torch.testing.assert_close(log_probs_of(Ensemble(members), source, ids), expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_an_ensemble_of_one_model_several_times_is_that_model() -> None:
    source, ids, model = random_source([4, 6]), random_targets(4, 5), model_of("transformer")
    expected = log_probs_of(model, source, ids)
    torch.testing.assert_close(log_probs_of(Ensemble([model, model, model]), source, ids), expected)


@torch.no_grad()
@pytest.mark.parametrize("weight", [0.0, 0.3, 2.0])
def test_a_language_model_adds_its_weighted_log_probability(weight: float) -> None:
    source, ids = random_source([4, 6]), random_targets(4, 5)
    model, bigram = model_of("rnn_attention"), model_of("bigram")
    features, _ = bigram.advance(ids, bigram.start(None, 4))
    expected = log_probs_of(model, source, ids) + weight * bigram.head.log_probs(features)
    found = log_probs_of(ShallowFusion(model, bigram, weight), source, ids)
    torch.testing.assert_close(found[..., 2:], expected[..., 2:])  # a bigram never expects padding or a begin
    assert not found.isnan().any()


@torch.no_grad()
def test_the_upper_half_of_a_trace_is_the_upper_half_of_every_member() -> None:
    trace = Trace()
    model = Ensemble([model_of("transformer"), model_of("transformer, pre-norm", 1)])
    model.advance(random_targets(2, 3), model.start(random_source([4, 6])), trace)
    names = [name for name in trace.weights if name.endswith("cross")]
    assert names == ["0.decoder.0.cross", "1.decoder.0.cross", "0.decoder.1.cross", "1.decoder.1.cross"]


def translator_of(model, lm=None) -> ModelTranslator:
    """From words to words."""
    return ModelTranslator(model, WORDS, WORDS, Normaliser(), lm=lm)


@pytest.mark.parametrize(
    "options",
    [
        SearchOptions(beam_size=3, max_tokens=8, nbest=2),
        SearchOptions(sample=True, nbest=2, max_tokens=8),
        SearchOptions(beam_size=4, max_tokens=8, coverage_penalty=0.3),
    ],
    ids=["beam", "samples", "coverage"],
)
@pytest.mark.parametrize("kind", ["ensemble", "fusion"])
def test_every_search_works_and_the_score_is_that_of_forced_scoring(kind: str, options: SearchOptions) -> None:
    lm = model_of("bigram")
    models = [half_trained("transformer"), half_trained("rnn_attention")]
    model = Ensemble(models) if kind == "ensemble" else ShallowFusion(models[0], lm, 0.2)
    translator = translator_of(model)
    found = translator.translate(LINES, options)
    assert [h.text for h in found] == [translator.translate([line], options)[0].text for line in LINES]
    ended = [(line, h) for line, h in zip(LINES, found, strict=True) if h.finished]
    assert len(ended) > 1
    for (_, h), score in zip(ended, translator.score([h.text for _, h in ended], [x for x, _ in ended]), strict=True):
        assert score.log_prob == pytest.approx(h.log_prob, abs=1e-4)


def test_an_output_has_the_score_of_the_language_model() -> None:
    lm, model = model_of("bigram"), half_trained("transformer")
    options = SearchOptions(beam_size=3, max_tokens=8)
    plain = translator_of(model)
    for line, h in zip(LINES, translator_of(ShallowFusion(model, lm, 0.2), lm).translate(LINES, options), strict=True):
        ids = (*h.ids, EOS) if h.finished else h.ids
        pairs = zip((1, *ids), ids, strict=False)
        behind = {a: lm.advance(torch.tensor([[a]]), lm.start(None))[0][0] for a in (1, *ids)}
        expected = sum(lm.head.log_prob(behind[a], torch.tensor([b])).item() for a, b in pairs)
        assert h.lm_log_prob == pytest.approx(expected, abs=1e-4)
        if h.finished:
            [score] = plain.score([h.text], [line])
            assert h.log_prob == pytest.approx(score.log_prob + 0.2 * expected, abs=1e-4)


def test_an_output_that_a_stop_cut_off_has_the_scores_of_its_tokens_alone() -> None:
    lm, model = model_of("bigram"), half_trained("transformer")
    translator = translator_of(ShallowFusion(model, lm, 0.2), lm)
    [whole] = translator.translate(LINES[:1], SearchOptions(max_tokens=8))
    words = whole.text.split()
    number = next(n for n, word in enumerate(words) if n and word not in words[:n])
    [cut] = translator.translate(LINES[:1], SearchOptions(max_tokens=8, stop=(words[number],)))
    assert cut.text.split() == words[:number]
    [score] = score_rows(lm, [cut.ids], torch.device("cpu"))
    assert cut.lm_log_prob == pytest.approx(sum(score.log_probs[: len(cut.ids)]), abs=1e-4)


def test_a_high_weight_makes_the_output_more_likely_under_the_language_model() -> None:
    lm, model = model_of("bigram"), half_trained("transformer")
    options = SearchOptions(beam_size=5, max_tokens=8, length_penalty=0.0)
    found = [translator_of(ShallowFusion(model, lm, w), lm).translate(LINES, options) for w in (0.0, 0.5)]
    means = [sum(h.lm_log_prob for h in hypotheses) for hypotheses in found]
    assert means[0] < means[1]
    assert [h.text for h in found[0]] == [h.text for h in translator_of(model).translate(LINES, options)]
    assert all(math.isfinite(mean) for mean in means)
