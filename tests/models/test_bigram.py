"""Does the adapter of the counting model answer what the counts say, and can it be saved?"""

from __future__ import annotations

import math

import pytest
import torch
from random_models import random_source

from heed.models.bigram import Bigram, BigramConfig
from heed.nn.contract import Smoothing, Source, Vocabularies

A, B = 4, 5
VOCABULARIES = Vocabularies(src_size=0, tgt_size=6)


def counted() -> Bigram:
    """A model of "a b", "a b" and "a"."""
    model = Bigram(BigramConfig(), VOCABULARIES)
    model.estimate([[A, B], [A, B], [A]])
    return model


def test_probabilities_are_those_of_the_formula() -> None:
    """Pairs: bos a 3, a b 2, b eos 2, a eos 1. D = 1 / (1 + 2 · 2) = 1/5; p(w) = (c(w) + 1) / (8 + 4)."""
    model = counted()
    features, _ = model.advance(torch.tensor([[1, A]]), model.start(None))
    unigram = {2: 4 / 12, 3: 1 / 12, A: 4 / 12, B: 3 / 12}
    after_bos = {w: (3 - 0.2) / 3 * (w == A) + 0.2 / 3 * p for w, p in unigram.items()}
    after_a = {w: ((2 - 0.2) * (w == B) + (1 - 0.2) * (w == 2)) / 3 + 0.2 * 2 / 3 * p for w, p in unigram.items()}
    found = model.head.log_probs(features)[0].exp()
    for position, expected in enumerate((after_bos, after_a)):
        assert found[position, :2].tolist() == [0.0, 0.0], "padding and begin are never predicted"
        assert found[position, 2:].tolist() == pytest.approx(list(expected.values()), abs=1e-6)


def test_a_sentence_is_as_likely_as_its_pairs() -> None:
    model = counted()
    tgt_in, tgt_out = torch.tensor([[1, A, B]]), torch.tensor([[A, B, 2]])
    features, _ = model.advance(tgt_in, model.start(None))
    steps = model.head.log_prob(features, tgt_out)
    loss, nll, num_tokens = model.head.loss(
        features, tgt_out, torch.ones_like(tgt_out, dtype=torch.bool), Smoothing(0.1)
    )
    assert num_tokens == 3
    assert loss.item() == nll.item() == pytest.approx(-steps.sum().item())
    assert steps[0, 0].item() == pytest.approx(math.log(2.8 / 3 + 0.2 / 3 * 4 / 12), abs=1e-6)


def test_counts_come_back_from_a_saved_state() -> None:
    model, other = counted(), Bigram(BigramConfig(), VOCABULARIES)
    features = torch.tensor([[[1], [A], [B]]])
    assert not torch.equal(other.head.log_probs(features), model.head.log_probs(features))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.head.log_probs(features), model.head.log_probs(features))


def test_it_has_no_weights_to_train() -> None:
    assert list(counted().parameters()) == []


def test_before_anything_was_counted_all_words_are_alike() -> None:
    model = Bigram(BigramConfig(), VOCABULARIES)
    features, _ = model.advance(torch.tensor([[1]]), model.start(None))
    assert model.head.log_probs(features)[0, 0, 2:].exp().tolist() == pytest.approx([0.25] * 4)


@pytest.mark.parametrize(("source", "rows", "expected"), [(None, 3, 3), (random_source([2, 4]), 3, 6)])
def test_rows_are_counted_and_a_source_tells_nothing(source: Source | None, rows: int, expected: int) -> None:
    state = counted().start(source, rows)
    assert state.num_rows == expected
    assert state.select(torch.tensor([0, 0])).join(state).num_rows == 2 + expected
